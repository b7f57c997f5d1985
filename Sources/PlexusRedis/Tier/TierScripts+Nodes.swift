extension TierScripts {
  // MARK: - Restarts

  /// KEYS: epoch, tokens, schemas, acknowledgements.
  ///
  /// ARGV: nonce, known epoch and token, the number of blocks to skip, the name of the run that was noted last, or nothing.
  ///
  /// A server that has restarted may have lost tokens that nodes know. It skips them, so that they are not given to other
  /// nodes, and notes which ones. Of many restarts without a new epoch, the oldest ones are not told apart. The nonce is
  /// the name of the run that begins.
  ///
  /// Returns whether this was done: another process can have noted the run since the name of the last one was read.
  static let restart = RedisScript("notes of a restart", common, PackageResources.restart_lua)

  // MARK: - Nodes

  /// KEYS: epoch, tokens, schemas, acknowledgements, fence.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Every node ends the trust in its copies, which stay valid.
  static let fence = RedisScript("clears", common, PackageResources.fence_lua)

  /// KEYS: epoch, tokens, schemas, acknowledgements, nodes, fence.
  ///
  /// ARGV: nonce, known epoch and token, node, ms of trust, the epoch and fence that it acknowledges or nothing.
  ///
  /// Returns the epoch, the fence, the name of the last loss of registrations, the longest trust of a node, and the last
  /// token: a node that hears of a removal knows of it afterwards.
  static let beat = RedisScript("heartbeats", common, PackageResources.beat_lua)

  /// KEYS: acknowledgements, nodes, fence.
  ///
  /// ARGV: nonce, epoch and fence.
  ///
  /// A fence that was lost is set again. Returns the name of the last loss of registrations, then for each node that has not
  /// acknowledged the epoch and the fence its name, ms of its trust, and the nonce of its last heartbeat. No time of the
  /// engine is involved: its clock can be set.
  static let laggards = RedisScript("clears", common, PackageResources.laggards_lua)

  /// KEYS: acknowledgements, nodes.
  ///
  /// ARGV: the names of nodes, each with the nonce of its last heartbeat.
  ///
  /// Removes the registrations of nodes without a later heartbeat. The node without a name is the last loss of
  /// registrations.
  static let forget = RedisScript("the end of registrations", common, PackageResources.forget_lua)

  /// KEYS: acknowledgements, nodes.
  ///
  /// ARGV: node.
  static let leave = RedisScript("the end of registrations", common, PackageResources.leave_lua)
}
