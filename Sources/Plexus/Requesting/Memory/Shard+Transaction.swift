extension Shard {
  /// A change under the lock: what it leaves to be done, and what it has taken out, once the lock is released.
  @usableFromInline
  struct Transaction: ~Copyable, Sendable {
    @usableFromInline var effects: Effects
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
    @usableFromInline var entries: ContiguousArray<Table.Entry> = []

    @inlinable
    init(_ effects: consuming Effects, at now: Nanoseconds) {
      self.effects = effects
      self.now = now
    }

    /// Keeps a removed entry alive until the lock is released.
    @inlinable
    mutating func release(_ removed: Table.Entry) {
      if entry == nil { entry = removed } else { entries.append(removed) }
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
    @usableFromInline let stack: DraftStack<Value>?
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

    @inlinable
    init(
      _ way: Edits.Way? = nil,
      below stack: DraftStack<Value>? = nil,
      cost: Int,
      name: String?
    ) {
      self.way = way
      self.stack = stack
      self.cost = cost
      self.name = name
    }
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
    if arrival.isUsed { extras?.idleTimes?.renew(arrival.index, at: transaction.now) }
    recordUnwritten(arrival, &transaction.effects)
    keep(arrival.index, cost: arrival.cost, &transaction)
  }
}

extension KeyedCache {
  @usableFromInline typealias Transaction = Shard<Key, Value>.Transaction
  @usableFromInline typealias Arrival = Shard<Key, Value>.Arrival

  /// Changes the entries of the shard of a hash, and then does what that leaves to be done.
  @inlinable
  @inline(__always)
  func change<Result>(
    _ hash: UInt64,
    at now: Nanoseconds,
    _ body: (inout Shard<Key, Value>, inout Transaction) -> Result
  ) -> Result {
    var transaction = Transaction(makeEffects(), at: now)
    let result = shards.withLock(hash: hash) { body(&$0, &transaction) }
    transaction.perform(in: self)
    return result
  }

  /// Does what follows from the new value and state of an entry, in one order.
  ///
  /// Indices are invalid after this call.
  @inlinable
  @inline(__always)
  func complete(
    _ arrival: borrowing Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    end(arrival.index, next: arrival.next, &shard, &transaction)
    if shard.extras != nil { shard.keep(arrival, &transaction) }
    guard let staleTimeToLive, transaction.value == nil else { return }
    shard.sweepStaleValues(
      at: transaction.now,
      staleTimeToLive: staleTimeToLive,
      staleTime,
      &transaction.effects
    )
  }

  /// Publishes the state after the end of a flight, and launches the next one.
  @inlinable
  @inline(__always)
  func end(
    _ index: Int,
    next: Flight?,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) {
    if let next {
      // It is needed until the last live subscription ends.
      if shard.hasLives, shard.isLive(index) { shard[index].state.needObservers() }
      shard.launch(next, index, isBulk: transaction.isBulk, &transaction.effects)
    }
    shard.publish(index, &transaction.effects)
    if next == nil { shard.removeIfEmpty(index, &transaction.effects) }
  }
}
