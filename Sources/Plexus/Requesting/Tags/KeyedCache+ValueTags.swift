// The results of fetches whose tags were cleared or refreshed while they ran: their keys could not be found by these tags.

extension KeyedCache {
  /// Judges the result of a flight by the clears and refreshes of its tags since it began, or since the look for a copy.
  @usableFromInline
  @inline(never)
  func judge(
    _ outcome: Outcome,
    of flight: Flight,
    _ arrival: borrowing Arrival,
    _ name: String?
  ) -> OwnMarksState.Verdict {
    guard let valueTags, let tags = arrival.tags else { return .usable }
    // The start of a copy is that of its value, which can be much older.
    let attempt = flight.attempt
    let order = outcome.isNew ? attempt.fetchStart.order : attempt.readOrder
    let verdict = valueTags.judge(name ?? "", tags.base, since: order)
    if verdict != .usable, outcome.kind != .failure { outcome.isOvertaken = true }
    return verdict
  }

  /// Renews the start of a value that is about to be changed by an update, so that it can get tags that were cleared before.
  ///
  /// The change of an outdated value is recorded as outdated.
  func renewStart(
    of index: Int,
    _ name: String?,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout CacheEffects
  ) {
    guard shared == nil, let name, let start = shard.extras?.pendingWrites?.start(at: index),
      valueTags != nil || start.isOutdated
    else { return }
    let entry = shard.keys.entries[index]
    let tags = shard.extras?.tagIndex?.tags(of: entry.key, hash: entry.hash) ?? []
    let renewed = renewed(start, name, tags, &effects)
    shard.extras?.pendingWrites?.setStart(renewed, at: index)
  }

  /// Renews the start of a value that has arrived below drafts, which are a change of it.
  @usableFromInline
  @inline(never)
  func renewStart(
    of arrival: inout Arrival,
    _ name: String?,
    _ effects: inout CacheEffects
  ) {
    guard shared == nil, let name, let start = arrival.start, arrival.stack != nil else { return }
    arrival.start = renewed(start, name, arrival.tags?.base ?? [], &effects)
  }

  private func renewed(
    _ start: FetchStart,
    _ name: String,
    _ tags: [CacheTag],
    _ effects: inout CacheEffects
  ) -> FetchStart {
    guard let storage else { return start }
    var start = start
    if valueTags != nil { start = storage.ledger.marks.withLock { $0.renewed(start, name, tags) } }
    guard start.isOutdated else { return start }
    // From now on, the mark says so.
    start.isOutdated = false
    if storage.note(.refreshedKey(name)).isToBeWritten { effects.callsCacher = true }
    return start
  }

  /// Ends the flight of an entry whose result was cleared by one of its tags: it is for the callers only.
  ///
  /// - Returns: The answer for the callers. A stored copy that was cleared is none.
  @usableFromInline
  @inline(never)
  func turnDown(
    _ outcome: Outcome,
    _ arrival: inout Arrival,
    _ shard: inout Shard<Key, Value>,
    _ transaction: inout Transaction
  ) -> Outcome {
    guard let failure = outcome.failure else {
      apply(Outcome(.cancelled, error: CancellationError()), &arrival, &shard, &transaction)
      return outcome
    }
    let failed = Outcome(.failure, error: outcome.error)
    failed.failure = Outcome.Failure(
      grounds: failure.grounds,
      memory: failure.memory,
      previous: failure.previous,
      stored: nil
    )
    let answer = answer(failed, shard, arrival.index, at: transaction.now)
    apply(failed, &arrival, &shard, &transaction)
    return answer
  }

  /// Marks the value of a flight as outdated, because one of its tags was refreshed since the flight began.
  @usableFromInline
  @inline(never)
  func outdate(
    _ flight: Flight,
    _ shard: inout Shard<Key, Value>,
    _ effects: inout CacheEffects
  ) {
    let key = key(of: flight)
    guard let index = shard.keys.index(of: key, hash: flight.hash), shard.hasValue(index) else {
      return
    }
    _ = shard[index].state.refresh(drawTicket(), hasValue: true)
    if let live = shard.live(key, flight.hash) { effects.deliver { live.refresh() } }
  }
}
