extension Shard {
  /// A change under the lock: what it leaves to be done, and what it has taken out, once the lock is released.
  @usableFromInline
  struct Transaction: ~Copyable, Sendable {
    @usableFromInline var effects: CacheEffects
    /// The time of the change, read before.
    @usableFromInline let now: Nanoseconds
    /// Whether flights are launched together with others.
    @usableFromInline var isBulk = false
    /// Whether a failure counts; that of a fetch of several keys counts once.
    @usableFromInline var countsFailure = true
    /// The value that was replaced or removed, and the details of its state.
    @usableFromInline var value: Value?
    @usableFromInline var details: EntryState.Details.Box?
    /// The entries that were removed; the first of them needs no array.
    @usableFromInline var entry: Table.Entry?
    @usableFromInline var entries: ContiguousArray<Table.Entry>?

    @inlinable
    init(_ effects: consuming CacheEffects, at now: Nanoseconds) {
      self.effects = effects
      self.now = now
    }

    /// Keeps a removed entry alive until the lock is released.
    @inlinable
    mutating func release(_ removed: Table.Entry) {
      if entry == nil {
        entry = removed
      } else {
        var more = entries.take() ?? []
        more.append(removed)
        entries = more
      }
    }

    /// Does the work that remains, and releases what was taken out.
    @inlinable
    @inline(__always)
    consuming func perform(in engine: CacheEngine) {
      effects.perform(in: engine)
    }

    /// Does the work that remains except for launching flights, and releases what was taken out.
    ///
    /// - Parameter engine: The cache that has been changed.
    /// - Returns: The flights to launch.
    @inlinable
    consuming func performWithoutLaunching(in engine: CacheEngine) -> [Flight] {
      effects.performWithoutLaunching(in: engine)
    }
  }

  /// The way in which an entry gets a value, the cost of the value, and its name.
  ///
  /// A copy would cost as much as all that follows from the value.
  @usableFromInline
  struct Arrival: ~Copyable, Sendable {
    /// The way in which it has arrived; `nil` for a change of the value before.
    @usableFromInline var way: Edits.Way?
    /// The drafts that were reapplied to it, if there are any.
    @usableFromInline let stack: DraftsToReapply<Value>?
    /// The cost of the visible value.
    @usableFromInline var cost: Int
    /// The name under which the cacher has to store it, if it has to.
    @usableFromInline var name: String?
    /// The start of its fetch; `nil` for a change of the value, which keeps its age.
    @usableFromInline var start: FetchStart?
    /// Whether the confirmed value has become another one than that which has arrived.
    @usableFromInline var changesBase = false
    /// The index of the entry.
    @usableFromInline var index = 0
    /// Whether no refresh is to be served.
    @usableFromInline var isNewest = true
    /// Whether the time to idle begins again.
    @usableFromInline var isUsed = true
    /// The flight that begins now.
    @usableFromInline var next: Flight?
    /// The tags of the value, if values have tags.
    @usableFromInline var tags: ArrivalTags?

    @inlinable
    init(
      _ way: Edits.Way? = nil,
      below stack: DraftsToReapply<Value>? = nil,
      cost: Int,
      name: String?
    ) {
      self.way = way
      self.stack = stack
      self.cost = cost
      self.name = name
    }
  }

  /// The tags of a value that arrives, including those of its key.
  @usableFromInline
  struct ArrivalTags: Sendable {
    /// The tags of the visible value.
    let visible: [CacheTag]
    /// The tags of the values below the drafts of its key.
    @usableFromInline let base: [CacheTag]
  }

  /// Replaces the value of an entry, below the drafts of its key; its state is changed next, and then
  /// ``KeyedCache/complete(_:_:_:)`` does what follows.
  @inlinable
  @inline(__always)
  mutating func put(
    _ value: Value?,
    _ arrival: inout Arrival,
    _ transaction: inout Transaction
  ) {
    transaction.details = keys.entries[arrival.index].element.state.box
    transaction.value = setValue(value, at: arrival.index)
    if value != nil, hasEdits, let way = arrival.way {
      putBelowDrafts(way, &arrival, &transaction.effects)
    }
  }

  /// Begins the time to idle of a value that has arrived, marks it as unwritten, and makes room for it.
  ///
  /// Indices are invalid after this call.
  @inlinable
  mutating func keep(_ arrival: borrowing Arrival, _ transaction: inout Transaction) {
    if let tags = arrival.tags { move(arrival.index, to: tags) }
    if arrival.isUsed { extras?.idleTimes?.renew(arrival.index, at: transaction.now) }
    recordUnwritten(arrival, &transaction.effects)
    keep(arrival.index, cost: arrival.cost, &transaction)
  }

  /// Moves an entry to the tags of its new value; while it has drafts, it keeps the ones before.
  @usableFromInline
  @inline(never)
  mutating func move(_ index: Int, to tags: ArrivalTags) {
    let (key, hash) = (keys.entries[index].key, keys.entries[index].hash)
    let below = isEdited(key, hash) ? tags.base : nil
    extras?.tagIndex?.replace(key, hash: hash, tags: tags.visible, below: below)
  }
}
