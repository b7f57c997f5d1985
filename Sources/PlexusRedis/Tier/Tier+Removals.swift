// MARK: - Removals

extension Tier {
  /// Lets entries serve as fallbacks only, in all schemas; a fetch in flight stores nothing.
  ///
  /// - Throws: ``TierFailures`` with the keys whose entries may not be outdated.
  func outdate(_ keys: some Collection<String>) async throws {
    let parts = await run(TierScripts.outdate, inAllSchemasFor: Array(keys)) { keys, schemas in
      RedisScript.Call(
        keys: heads
          + keys.flatMap { key in
            schemas.flatMap { [names.entry(key, in: $0), names.lease(key, in: $0)] }
          },
        arguments: knowledge + [.text(list(schemas))]
      )
    }
    try check(parts, \.self) { _ = try change($1) }
  }

  /// Removes entries in all schemas; a fetch in flight stores nothing.
  ///
  /// - Throws: ``TierFailures`` with the keys whose entries may still be there.
  func remove(_ keys: some Collection<String>) async throws {
    let parts = await run(TierScripts.remove, inAllSchemasFor: Array(keys)) { keys, schemas in
      RedisScript.Call(
        keys: heads
          + keys.flatMap { key in
            schemas.flatMap { schema in
              [
                names.entry(key, in: schema), names.lease(key, in: schema),
                names.fetch(key, in: schema),
              ]
            }
          },
        arguments: knowledge + [.text(list(schemas))]
      )
    }
    try check(parts, \.self) { _ = try change($1) }
  }

  /// Removes the entries with one of some tags, whose keys need not be known; a fetch in flight stores nothing.
  ///
  /// - Throws: ``TierFailures`` with the tags whose entries may still be there.
  func remove(tags: some Collection<String>) async throws {
    let parts = await run(TierScripts.removeTags, inPartsOf: Array(tags)) { tags in
      RedisScript.Call(keys: heads + tags.map { names.tag($0) }, arguments: knowledge)
    }
    try check(parts, \.self) { _ = try change($1) }
  }

  /// Removes everything: the epoch is raised.
  ///
  /// - Parameter number: The number of an epoch, above which it is not raised again; `nil` for none.
  /// - Returns: The new epoch.
  /// - Throws: An error of the connection.
  @discardableResult
  func removeAll(unlessRaisedAbove number: UInt64? = nil) async throws -> TierEpoch {
    try await checkRestart(on: route)
    let call = removalOfAll(unlessRaisedAbove: number)
    return try change(await TierScripts.removeAll.run([call], on: route)[0].get()).epoch
  }

  /// The call that raises the epoch, unless it is above that with a number.
  func removalOfAll(unlessRaisedAbove number: UInt64?) -> RedisScript.Call {
    RedisScript.Call(
      keys: heads + [names.acknowledgements],
      arguments: knowledge + [.text(number.map { "\($0)" } ?? "")]
    )
  }
}

// MARK: - Nodes

extension Tier {
  /// The answer to a heartbeat.
  struct Beat: Sendable {
    /// The changes that nodes acknowledge.
    let mark: TierMark
    /// The name of the last loss of registrations; `nil` for none.
    let loss: String?
    /// The longest time for which a node of the space has ever trusted its copies.
    let longestTrust: Duration
  }

  /// A node that has not acknowledged a mark.
  struct Laggard: Hashable, Sendable {
    let node: String
    /// The time for which it trusts its copies after a heartbeat.
    let trust: Duration
    /// The name of its last heartbeat.
    let beat: String
  }

  /// Lets every node look for its copies again, which removes no entry.
  ///
  /// - Returns: The mark that nodes acknowledge.
  func fence() async throws -> TierMark {
    try await checkRestart(on: route)
    let reply = try await TierScripts.fence.run(
      on: route,
      keys: heads + [names.acknowledgements, names.fence],
      knowledge
    )
    return try change(reply)
  }

  /// Registers the node or renews its registration, with the mark that it has acknowledged.
  ///
  /// - Parameters:
  ///   - acknowledged: The mark: the node trusts no copy from before it.
  ///   - trust: The time for which it trusts its copies.
  /// - Returns: The answer.
  /// - Throws: An error of the connection.
  func beat(acknowledging acknowledged: TierMark?, trust: Duration) async throws -> Beat {
    try await checkRestart(on: route)
    let reply = try await TierScripts.beat.run(
      on: route,
      keys: heads + [names.acknowledgements, names.nodes, names.fence],
      knowledge + [.text(node), milliseconds(trust), .text(acknowledged?.description ?? "")]
    )
    let mark = try change(reply)
    guard let elements = reply.elements, elements.count == 5, let loss = elements[2].text,
      let longest = elements[3].integer, longest >= 0, token(elements[4]) != nil
    else { throw TierError.unexpectedReply }
    return Beat(mark: mark, loss: Self.loss(loss), longestTrust: .milliseconds(longest))
  }

  /// Returns the nodes that have not acknowledged a mark.
  ///
  /// - Parameter mark: The mark; `nil` for all nodes.
  /// - Returns: The nodes, and the name of the last loss of registrations; `nil` for none.
  /// - Throws: An error of the connection.
  func laggards(behind mark: TierMark?) async throws -> (nodes: [Laggard], loss: String?) {
    // No node has acknowledged the last of all epochs.
    let mark = mark ?? TierMark(epoch: TierEpoch(counter: TierScripts.largestNumber, nonce: 0))
    let reply = try await TierScripts.laggards.run(
      on: route,
      keys: [names.acknowledgements, names.nodes, names.fence],
      [knowledge[0], .text(mark.epoch.description), number(mark.fence)]
    )
    guard let elements = reply.elements, elements.count % 3 == 1, let loss = elements[0].text else {
      throw TierError.unexpectedReply
    }
    let nodes = try stride(from: 1, to: elements.count, by: 3).map { index in
      guard let node = elements[index].text, let trust = elements[index + 1].integer,
        let beat = elements[index + 2].text
      else { throw TierError.unexpectedReply }
      return Laggard(node: node, trust: .milliseconds(max(0, trust)), beat: beat)
    }
    return (nodes, Self.loss(loss))
  }

  private static func loss(_ name: String) -> String? { name == "0" ? nil : name }

  /// Removes the registrations of nodes without a later heartbeat, and a loss of registrations, which are over.
  func forget(_ nodes: [Laggard], loss: String? = nil) async throws {
    guard !nodes.isEmpty || loss != nil else { return }
    let pairs = nodes.flatMap { [$0.node, $0.beat] } + (loss.map { ["", $0] } ?? [])
    _ = try await TierScripts.forget.run(
      on: route,
      keys: [names.acknowledgements, names.nodes],
      pairs.map { .text($0) }
    )
  }

  /// Removes the registration.
  func leave() async throws {
    _ = try await TierScripts.leave.run(
      on: route,
      keys: [names.acknowledgements, names.nodes],
      [.text(node)]
    )
  }
}
