// The arrays of a shard are copied by reference under its lock. The next change of an array that is still referenced
// copies it once, as any change of a shared array does.

extension Shard {
  /// The entries of a shard at one moment, to be read with no lock held.
  struct Moment: Sendable {
    let entries: ContiguousArray<Table.Entry>
    /// The costs of the values, if they differ.
    fileprivate let nodes: ContiguousArray<S3FIFO.Node>?
    fileprivate let idleTimes: IdleTimes?
    fileprivate let tags: TagIndex<Key>.Moment?

    /// Returns the cost of a value.
    func cost(of index: Int) -> Int { nodes?[index].cost ?? 1 }

    /// Returns the time at which a value becomes idle; `.max` without a time to idle.
    func idleDeadline(of index: Int) -> Nanoseconds { idleTimes?.deadline(of: index) ?? .max }

    /// Returns the tags of an entry.
    func tags(of index: Int) -> [CacheTag] {
      tags?.tags(of: entries[index].key, hash: entries[index].hash) ?? []
    }
  }

  /// Returns the present entries.
  ///
  /// - Parameter hasCosts: Whether the costs of values differ.
  /// - Returns: The entries.
  func moment(hasCosts: Bool) -> Moment {
    Moment(
      entries: keys.entries,
      nodes: hasCosts ? extras?.eviction?.nodes : nil,
      idleTimes: extras?.idleTimes,
      tags: extras?.tagIndex?.moment
    )
  }
}
