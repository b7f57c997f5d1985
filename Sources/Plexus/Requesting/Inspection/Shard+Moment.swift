// The arrays of a shard are copied by reference under its lock. The next change of an array that is still referenced
// copies it once, as any change of a shared array does.

extension Shard {
  /// The entries of a shard at one moment, to be read with no lock held.
  @usableFromInline
  struct Moment: Sendable {
    @usableFromInline let entries: ContiguousArray<Table.Entry>
    /// The costs of the values, if they differ.
    @usableFromInline let nodes: ContiguousArray<S3FIFO.Node>?
    @usableFromInline let idleTimes: IdleTimes?
    @usableFromInline let tags: TagIndex<Key>.Moment?

    @usableFromInline
    init(
      entries: ContiguousArray<Table.Entry>,
      nodes: ContiguousArray<S3FIFO.Node>?,
      idleTimes: IdleTimes?,
      tags: TagIndex<Key>.Moment?
    ) {
      self.entries = entries
      self.nodes = nodes
      self.idleTimes = idleTimes
      self.tags = tags
    }

    /// Returns the cost of a value.
    @inlinable
    func cost(of index: Int) -> Int { nodes?[index].cost ?? 1 }

    /// Returns the time at which a value becomes idle; `.max` without a time to idle.
    @inlinable
    func idleDeadline(of index: Int) -> Nanoseconds { idleTimes?.deadline(of: index) ?? .max }

    /// Returns the tags of an entry.
    @inlinable
    func tags(of index: Int) -> [CacheTag] {
      tags?.tags(of: entries[index].key, hash: entries[index].hash) ?? []
    }
  }

  /// Returns the present entries.
  ///
  /// - Parameter hasCosts: Whether the costs of values differ.
  /// - Returns: The entries.
  @usableFromInline
  func moment(hasCosts: Bool) -> Moment {
    Moment(
      entries: keys.entries,
      nodes: hasCosts ? extras?.eviction?.nodes : nil,
      idleTimes: extras?.idleTimes,
      tags: extras?.tagIndex?.moment
    )
  }
}
