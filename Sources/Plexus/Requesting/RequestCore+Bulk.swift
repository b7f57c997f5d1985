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
    if !pending.isEmpty {
      results.merge(await wait(for: pending)) { _, newer in newer }
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

  private func wait(for pending: [Pending]) async -> [Key: Result<Value, any Error>] {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *),
      Task.currentPriority < .high
    {
      await withTaskPriorityEscalationHandler(
        operation: { await results(of: pending) },
        onPriorityEscalated: { _, priority in
          for item in pending { item.flight.work.raise(to: priority) }
        }
      )
    } else {
      await results(of: pending)
    }
  }

  private func results(of pending: [Pending]) async -> [Key: Result<Value, any Error>] {
    // It may have been raised since the flights were joined.
    let priority = Task.currentPriority
    for item in pending { item.flight.work.raise(to: priority) }
    return await withTaskCancellationHandler(
      operation: {
        var results: [Key: Result<Value, any Error>] = [:]
        results.reserveCapacity(pending.count)
        for item in pending { results[item.key] = await result(of: item) }
        return results
      },
      onCancel: {
        // The caller waits in the first of these places that is left: it goes on when all are.
        for item in pending.reversed() { self.leave(item.flight, item.place, scope: item.scope) }
      },
      isolation: #isolation
    )
  }

  private func result(of item: Pending) async -> Result<Value, any Error> {
    let ending = await item.flight.waiters.wait(in: item.place)
    guard ending == .finished else { return .failure(CancellationError()) }
    if let scope = item.scope { WaitGraph.stopWaiting(scope, for: item.flight.mark) }
    return Result { try item.flight.answer().value }
  }

  /// Launches several flights: together, if there is a fetch for several keys.
  func launch(_ launches: [Launch<Key, Value>]) {
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

  /// What reading a stored copy leads to.
  private enum Reading: Sendable {
    case remains(Remaining)
    /// The flight has ended; these are to be launched now, to renew the copy.
    case ended([Launch<Key, Value>])
  }

  /// Does the work: every flight ends, exactly once.
  func run(_ launches: [Launch<Key, Value>]) async {
    let remaining = await restore(launches).filter { item in
      let flight = item.launch.flight
      guard flight.work.isCancelled || flight.mark.isSettled else { return true }
      // Nobody waits for it any more.
      core.launch(core.finish(flight, with: .cancelled(CancellationError())))
      return false
    }
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
    var isFirstFailure = true
    var next: [Launch<Key, Value>] = []
    for item in remaining {
      let own = self.ending(of: item.launch.flight.key, ending)
      let ending = await core.ending(of: item.launch, found: item.found, own)
      next += core.finish(item.launch.flight, with: ending, countsFailure: isFirstFailure)
      if ending.isFailure { isFirstFailure = false }
    }
    core.launch(next)
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
      var renewals: [Launch<Key, Value>] = []
      var rest = launches[...]
      var running = 0
      while true {
        // Storage is not asked for any number of entries at once.
        while running < 16, let launch = rest.popFirst() {
          running += 1
          group.addTask { await self.restore(launch) }
        }
        guard let next = await group.next() else { break }
        running -= 1
        switch next {
        case .remains(let item): remaining.append(item)
        case .ended(let launches): renewals += launches
        }
      }
      core.launch(renewals)
      return remaining
    }
  }

  private func restore(_ launch: Launch<Key, Value>) async -> Reading {
    let run = FetchRun(core: core, launch: launch)
    guard let found = await run.storedCopy() else {
      return .remains(Remaining(launch: launch, found: nil))
    }
    if let ending = run.ending(with: found) {
      return .ended(core.finish(launch.flight, with: ending))
    }
    return .remains(Remaining(launch: launch, found: found))
  }
}
