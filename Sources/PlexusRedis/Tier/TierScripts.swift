/// The changes of a space, each carried out by the engine as a whole.
enum TierScripts {
  /// The largest number of an engine that is no damage: up to it, scripts count exactly.
  static let largestNumber: UInt64 = 1 << 53
  /// The number of tokens in a block.
  ///
  /// Two tokens of one block are given out without a restart of the server in between.
  static let blockSize: UInt64 = 1 << 18
  /// The numbers of blocks that a restarted server skips: more than it can have lost.
  ///
  /// It is another one each time, since the history that was lost can have had a restart itself.
  static let skips: ClosedRange<UInt64> = 128...131_072

  /// The functions that the scripts share.
  ///
  /// Scripts that use `current` have the epoch, the tokens and the schemas as their first three keys. A server without
  /// memory refuses the first change of a script if it needs memory, and none after a change that needs none. The scripts
  /// that remove something begin with such a change: unlike the flag `allow-oom`, this works with every version.
  static let common =
    RedisScript.text(PackageResources.run_lua)
    + "local largest, block = \(largestNumber), \(blockSize)\n"
    + RedisScript.text(PackageResources.tier_lua)

  /// KEYS: epoch, tokens, schemas, then entry, lease and fetch of each key, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, schema, the number of keys, holder, ms of a lease, ms of retention, then a wish
  /// for each key: whether a lease is wanted, and if there is more, the epoch and token of the version that is not new
  /// enough, the token of the lease that the node waits for, the token and renewal of a lease that is over by the clock
  /// of the node, and the numbers of its tags.
  ///
  /// The findings come after the epoch, the nonce, which tells the replies to two looks apart, and the time. An entry is a
  /// text, since it is the most frequent finding: its token, its age in ms and the payload. A lease that another node
  /// holds has a token, a length in ms, the previous entry, the last renewal, and the rest in ms if the clock of the
  /// engine was not set since then.
  static let look = RedisScript("looks", common, PackageResources.look_lua)

  /// KEYS: epoch, tokens, schemas, entry, lease, fetch, then the tags.
  ///
  /// ARGV: epoch and token of the lease, holder, schema, payload, ms for which the entry is kept.
  static let fill = RedisScript("fills", common, PackageResources.fill_lua)

  /// KEYS: epoch, tokens, schemas, then the entry and lease of each key in each schema, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has, the first of which is the node's, their
  /// number, the number of the epoch that is required or nothing, the number of keys, then the payload of each key, ms for
  /// which the entry is kept, the numbers of its tags, the token since which the key must not have changed, or nothing, and the
  /// name of the cache with the number of the value in it, or nothing.
  ///
  /// Leases that are held end: what their holders fetch is older than what is stored, and so are the entries of other
  /// schemas.
  ///
  /// Returns the epoch and the token of each entry, 0 for one whose key can have changed. Returns the schemas if a call does
  /// not have the keys of all of them.
  static let store = RedisScript("stores", common, PackageResources.store_lua)

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: holder, payload of the failure or nothing, ms of its retention, then
  /// epoch and token of each lease.
  static let release = RedisScript("releases of leases", common, PackageResources.release_lua)

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: holder, ms of a lease, then epoch and token of each lease.
  ///
  /// A lease is lost if another node has taken it over, whatever the time. Each renewal has a higher number than the one
  /// before it, even if the clock of the engine was set back. The key of a lease, which waiting nodes track, is changed at
  /// most every twelve hours.
  static let renew = RedisScript("renewals of leases", common, PackageResources.renew_lua)

  /// KEYS: epoch, tokens, schemas, then entry and lease of each key in each schema.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has.
  ///
  /// Entries stay as fallbacks. A lease that is held ends, since its fetch may have begun before the change.
  ///
  /// Returns the schemas if a call does not have the keys of all of them.
  static let outdate = RedisScript("refreshes", common, PackageResources.outdate_lua)

  /// KEYS: epoch, tokens, schemas, then entry, lease and fetch of each key in each schema.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has.
  ///
  /// Returns the schemas if a call does not have the keys of all of them.
  static let remove = RedisScript("removals", common, PackageResources.remove_lua)

  /// KEYS: epoch, tokens, schemas, then the tags.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Entries and leases with a tag that is not known are not valid. The next use of the tag gives it a higher token.
  static let removeTags = RedisScript("removals by tag", common, PackageResources.remove_tags_lua)

  /// KEYS: epoch, tokens, schemas, acknowledgements.
  ///
  /// ARGV: nonce, known epoch and token, the number of an epoch, above which it is not raised, or nothing.
  static let removeAll = RedisScript(
    "removals of everything",
    common,
    PackageResources.remove_all_lua
  )
}
