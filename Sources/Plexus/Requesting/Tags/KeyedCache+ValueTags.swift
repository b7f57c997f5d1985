// The results of fetches whose tags were cleared or refreshed while they ran: their keys could not be found by these tags.

extension KeyedCache {
  /// Judges the result of a flight by the clears and refreshes of its tags since it began.
  @usableFromInline
  @inline(never)
  func judge(
    _ flight: Flight,
    _ arrival: borrowing Arrival,
    _ name: String?
  ) -> OwnMarksState.Verdict {
    guard let valueTags, let tags = arrival.tags, let start = arrival.start else { return .usable }
    return valueTags.judge(name ?? "", tags.base, since: start)
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
  func outdate(_ flight: Flight, _ shard: inout Shard<Key, Value>) {
    guard let index = shard.keys.index(of: key(of: flight), hash: flight.hash),
      shard.hasValue(index)
    else { return }
    _ = shard[index].state.refresh(drawTicket(), hasValue: true)
  }
}
