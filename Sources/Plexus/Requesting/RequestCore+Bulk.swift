internal import Synchronization

extension RequestCore {
  /// Answers requests of several keys, after one wait for all of them if need be.
  ///
  /// - Parameters:
  ///   - keys: What is asked for.
  ///   - ticket: The newest refresh that the caller insists on.
  /// - Returns: The value or the error of each key.
  func settle(
    _ keys: some Collection<Key>,
    ticket: RefreshTicket
  ) async -> [Key: Result<Value, any Error>] {
    var results: [Key: Result<Value, any Error>] = [:]
    results.reserveCapacity(keys.count)
    var pending: [Pending] = []
    var asked: Set<Key> = []
    var launches: [Launch<Key, Value>] = []
    for key in keys where asked.insert(key).inserted {
      let hash = hasher.hash(key)
      if let value = hit(key, hash: hash, ticket: ticket) {
        results[key] = .success(value)
        continue
      }
      do {
        switch try decide(key, hash: hash, ticket: ticket, &launches) {
        case .answered(let answer):
          results[key] = .success(answer.value)
        case .waits(let flight, let place, let scope):
          pending.append(Pending(key: key, flight: flight, place: place, scope: scope))
        }
      } catch {
        results[key] = .failure(error)
      }
    }
    launch(launches)
    let hasLeft = Once()
    for item in pending {
      results[item.key] = await wait(item, among: pending, leaving: hasLeft)
    }
    return results
  }

  /// A place in a flight that is waited for together with others.
  private struct Pending: Sendable {
    let key: Key
    let flight: Flight<Key, Value>
    let place: WaitPlace
    let scope: (any FlightNode)?
  }

  private func wait(
    _ item: Pending,
    among pending: [Pending],
    leaving hasLeft: Once
  ) async -> Result<Value, any Error> {
    let ending = await item.flight.waiters.wait(
      in: item.place,
      onCancel: {
        // All of them, which are waited for only after this one, and only once: a place that was given
        // back may be another caller's.
        guard hasLeft.happens() else { return }
        for item in pending { self.leave(item.flight, item.place, scope: item.scope) }
      },
      onEscalation: { priority in
        for item in pending { item.flight.work.raise(to: priority) }
      }
    )
    guard ending == .finished else { return .failure(CancellationError()) }
    if let scope = item.scope { WaitGraph.stopWaiting(scope, for: item.flight.mark) }
    return Result { try item.flight.answer().value }
  }

  /// Launches several flights: together, if there is a fetch for several keys.
  private func launch(_ launches: [Launch<Key, Value>]) {
    guard let bulkFetch, launches.count > 1 else {
      for launch in launches { self.launch(launch) }
      return
    }
    let batch = FlightBatch(count: launches.count)
    let mark = BatchMark(launches.map(\.flight.mark))
    for launch in launches {
      launch.flight.mark.begin(in: mark)
      launch.flight.work.join(batch)
    }
    let readsFirst = launches.contains(where: \.readsFirst)
    if !readsFirst { noteFetch(hash: launches[0].flight.hash) }
    batch.work.start { [self] in
      await BatchRun(core: self, bulkFetch: bulkFetch, batch: batch, mark: mark).run(launches)
      batch.work.finish()
    }
  }
}

/// Something that happens once.
private final class Once: Sendable {
  private let hasHappened = Atomic<Bool>(false)

  /// Returns whether it happens with this call.
  func happens() -> Bool {
    !hasHappened.exchange(true, ordering: .acquiringAndReleasing)
  }
}

/// The work of several flights at once: their stored copies, one fetch for the rest of them, its timeout
/// and its retries.
struct BatchRun<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let core: RequestCore<Key, Value>
  let bulkFetch: RequestCore<Key, Value>.BulkFetch
  let batch: FlightBatch
  let mark: BatchMark<Key>

  /// A flight that its stored copy will not do for.
  private struct Remaining: Sendable {
    let launch: Launch<Key, Value>
    let found: FoundCopy<Value>?
  }

  /// Does the work: every flight ends, exactly once.
  func run(_ launches: [Launch<Key, Value>]) async {
    let remaining = await restore(launches)
    guard let first = remaining.first else { return }
    if launches.contains(where: \.readsFirst) {
      core.noteFetch(hash: first.launch.flight.hash)
    }
    let keys = remaining.map(\.launch.flight.key)
    let (mark, bulkFetch) = (mark, bulkFetch)
    let ending = await Attempts(policy: core.policy, clock: core.clock, work: batch.work).run(
      unless: { mark.isSettled },
      { _ in try await FlightScope.$current.withValue(mark) { try await bulkFetch(keys) } }
    )
    for item in remaining {
      let own = self.ending(of: item.launch.flight.key, ending)
      core.finish(
        item.launch.flight,
        with: await core.ending(of: item.launch, found: item.found, own)
      )
    }
  }

  /// What a fetch for several keys has come to for one of them.
  private func ending(
    of key: Key,
    _ ending: Attempts.Ending<[Key: Value]>
  ) -> Attempts.Ending<FetchResult<Value>> {
    switch ending {
    case .success(let values):
      guard let value = values[key] else { return .failure(MultiplexerError.missingKey("\(key)")) }
      return .success(.value(value))
    case .failure(let error): return .failure(error)
    case .cancelled(let error): return .cancelled(error)
    }
  }

  /// Ends the flights that their stored copies will do for.
  ///
  /// - Returns: The others.
  private func restore(_ launches: [Launch<Key, Value>]) async -> [Remaining] {
    guard launches.contains(where: \.readsFirst) else {
      return launches.map { Remaining(launch: $0, found: nil) }
    }
    return await withTaskGroup { group in
      var remaining: [Remaining] = []
      var rest = launches[...]
      var running = 0
      while true {
        // Storage is not asked for any number of entries at once.
        while running < 16, let launch = rest.popFirst() {
          running += 1
          group.addTask { await self.restore(launch) }
        }
        guard let next = await group.next() else { return remaining }
        running -= 1
        if let next { remaining.append(next) }
      }
    }
  }

  private func restore(_ launch: Launch<Key, Value>) async -> Remaining? {
    let run = FetchRun(core: core, launch: launch)
    guard let found = await run.storedCopy() else { return Remaining(launch: launch, found: nil) }
    if let ending = run.ending(with: found) {
      core.finish(launch.flight, with: ending)
      return nil
    }
    return Remaining(launch: launch, found: found)
  }
}
