extension KeyedCache {
  /// The number of values of one fetch that are stored at the same time.
  private static var fillWidth: Int { 128 }

  /// One of several flights that look for their keys together.
  private struct SharedItem: Sendable {
    let name: String
    let flight: Flight
    let watch: SharedWatch
    var wish: SharedCache.Wish
    /// The number of looks that are left.
    var rest: Int
    /// The time at which the lease that it waits for ends.
    var waitsUntil = Nanoseconds.max
  }

  private struct GrantedFlight: Sendable {
    let flight: Flight
    let lease: SharedCache.Lease
    let previous: Outcome?
  }

  /// The results of the looks of several flights.
  private struct SharedRound: Sendable {
    var granted: [GrantedFlight] = []
    var alone: [SharedItem] = []
    var failed: [(item: SharedItem, failure: SharedCache.Failure)] = []
    var waiting: [SharedItem] = []
  }

  /// Does the work of several flights with the shared tier: one look for all of them, and one fetch for the rest.
  ///
  /// Flights that wait for other processes look again together, and those of them that have to fetch do that together.
  @usableFromInline
  func shareTogether(
    _ flights: [Flight],
    in batch: BulkFlight,
    by link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    var items: [SharedItem] = []
    var others: [Flight] = []
    var names: Set<String> = []
    for flight in flights {
      let name = storage.name(of: key(of: flight))
      guard names.insert(name).inserted else {
        others.append(flight)
        continue
      }
      items.append(
        SharedItem(
          name: name,
          flight: flight,
          watch: watch(flight, name, link),
          wish: firstWish(of: flight, name, link),
          rest: Self.lookLimit
        )
      )
    }
    var looking = items
    var round = SharedRound()
    if await !settleDebts(of: items.map { ($0.name, $0.flight) }, link, storage) {
      (looking, round.alone) = ([], items)
    }
    await withTaskGroup(of: Void.self) { [others, looking] group in
      // Other flights of a key continue separately.
      for flight in others {
        group.addTask {
          let outcome = await self.share(flight, by: link, storage)
          self.countTime(of: flight)
          self.launch(self.finish(flight, with: outcome, isBulk: true))
        }
      }
      var (looking, hasFetched) = (looking, false)
      while true {
        await look(for: looking, on: batch, &round, link, storage)
        await end(round.failed, on: batch, link, storage)
        for fetch in fetches(of: round, link, storage, with: bulkFetch) {
          let part =
            hasFetched
            ? BulkFlight(fetch.flights, partOf: batch) : batch
          hasFetched = true
          group.addTask { await fetch.run(part) }
        }
        guard !round.waiting.isEmpty, !batch.isCancelled else { break }
        var waiting = round.waiting
        round = SharedRound()
        looking = await changed(among: &waiting, link)
        round.waiting = waiting
      }
      for item in round.waiting {
        let outcome = Outcome(.cancelled, error: CancellationError())
        launch(finish(item.flight, with: outcome, isBulk: true))
      }
    }
  }

  /// Looks for keys until each of them has a result, and ends the flights that have an answer.
  private func look(
    for items: [SharedItem],
    on batch: BulkFlight,
    _ round: inout SharedRound,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async {
    var looking = items
    var launched: [Flight] = []
    while !looking.isEmpty {
      for item in looking { item.watch.begin() }
      let wishes = Dictionary(uniqueKeysWithValues: looking.map { ($0.name, $0.wish) })
      let findings = await look(for: wishes, on: batch, link, storage)
      var again: [SharedItem] = []
      for var item in looking {
        guard let finding = findings[item.name] else {
          round.alone.append(item)
          continue
        }
        switch step(finding, item.wish, for: item.flight, item.name, link) {
        case .answers(let outcome):
          launched += finish(item.flight, with: outcome, isBulk: true)
        case .looksAgain(let version):
          item.rest -= 1
          item.wish = newWish(of: item.flight)
          item.wish.newerThan = version
          if item.rest > 0 { again.append(item) } else { round.alone.append(item) }
        case .fetches(let lease, let previous):
          round.granted.append(
            GrantedFlight(flight: item.flight, lease: lease, previous: previous)
          )
        case .waits(let version, let limit):
          item.wish.awaited = version
          item.waitsUntil = link.trust.time.now()
            .addingSaturating(Nanoseconds(saturating: limit))
          round.waiting.append(item)
        case .fails(let failure):
          round.failed.append((item, failure))
        case .isAlone:
          round.alone.append(item)
        }
      }
      looking = again
    }
    launch(launched)
  }

  /// Waits until keys have changed, or the leases that flights wait for have ended.
  ///
  /// - Parameters:
  ///   - waiting: The flights that wait, without the returned ones afterwards.
  ///   - link: The link to the shared tier.
  /// - Returns: The flights that have to look again; none if the task is cancelled.
  private func changed(
    among waiting: inout [SharedItem],
    _ link: SharedLink<Key, Value>
  ) async -> [SharedItem] {
    while !Task.isCancelled {
      let now = link.trust.time.now()
      var changed: [SharedItem] = []
      var rest: [SharedItem] = []
      for item in waiting {
        if item.watch.isOver || item.waitsUntil <= now {
          if item.watch.hasChanged { item.flight.note(readCopy: nil) }
          changed.append(item)
        } else {
          rest.append(item)
        }
      }
      waiting = rest
      if !changed.isEmpty { return changed }
      let limit = (rest.map(\.waitsUntil).min() ?? now).subtractingSaturating(now)
      // Leases end by the clock of the engine, whatever the clock of the cache.
      await SharedWatch.wait(
        for: rest.map(\.watch),
        atMost: .nanoseconds(limit),
        on: link.trust.clock
      )
    }
    return []
  }

  /// Ends the flights whose fetches have failed in another process.
  private func end(
    _ failed: [(item: SharedItem, failure: SharedCache.Failure)],
    on batch: BulkFlight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>
  ) async {
    guard !failed.isEmpty else { return }
    let flights = failed.map { ($0.item.name, $0.item.flight) }
    let copies = await fallbacks(
      for: Dictionary(uniqueKeysWithValues: flights),
      on: batch,
      link,
      storage
    )
    for (item, failure) in failed {
      let outcome = self.failure(failure, of: item.flight, stored: copies[item.name], link)
      launch(finish(item.flight, with: outcome, isBulk: true))
    }
  }
}

// MARK: - Fetches

extension KeyedCache {
  /// A fetch of several keys that has to begin.
  private struct SharedFetch: Sendable {
    let flights: [Flight]
    let run: @Sendable (BulkFlight) async -> Void
  }

  /// Returns the fetches after a round of looks: one under leases, and one without the shared tier.
  private func fetches(
    of round: SharedRound,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) -> [SharedFetch] {
    var fetches: [SharedFetch] = []
    if !round.granted.isEmpty {
      fetches.append(
        SharedFetch(flights: round.granted.map(\.flight)) { [self] batch in
          await fetch(round.granted, in: batch, link, storage, with: bulkFetch)
        }
      )
    }
    if !round.alone.isEmpty {
      fetches.append(
        SharedFetch(flights: round.alone.map(\.flight)) { [self] batch in
          await fetchAlone(round.alone, in: batch, link, with: bulkFetch)
        }
      )
    }
    return fetches
  }

  /// Fetches the values of several flights without the shared tier, for their current callers.
  private func fetchAlone(
    _ items: [SharedItem],
    in batch: BulkFlight,
    _ link: SharedLink<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    for item in items { item.flight.previous = nil }
    let values: BulkValues<Key, Value>
    do {
      values = try await self.values(of: items.map(\.flight), in: batch, with: bulkFetch)
    } catch {
      let failed = items.map { ($0.flight, $0.flight.readCopy) }
      return end(failed, because: error, link)
    }
    var launched: [Flight] = []
    for item in items {
      let outcome = fetched(item.flight, in: values)
      let result = endAlone(item.flight, item.name, with: outcome, link)
      launched += finish(item.flight, with: result, isBulk: true)
    }
    launch(launched)
  }

  /// Fetches the values of several flights under their leases.
  private func fetch(
    _ granted: [GrantedFlight],
    in batch: BulkFlight,
    _ link: SharedLink<Key, Value>,
    _ storage: Storage<Key, Value>,
    with bulkFetch: @escaping BulkFetch
  ) async {
    let values: BulkValues<Key, Value>
    do {
      values = try await self.values(of: granted.map(\.flight), in: batch, with: bulkFetch)
    } catch {
      await release(granted.map(\.lease), of: granted.map(\.flight), because: error, link, storage)
      return end(granted.map { ($0.flight, $0.previous) }, because: error, link)
    }
    await withTaskGroup(of: Void.self) { group in
      for (number, item) in granted.enumerated() {
        // A cacher is not given all values at once, however many they are.
        if number >= Self.fillWidth { await group.next() }
        group.addTask {
          let result = await self.handOver(
            self.fetched(item.flight, in: values),
            of: item.flight,
            under: item.lease,
            item.previous,
            link,
            storage
          )
          self.launch(self.finish(item.flight, with: result, isBulk: true))
        }
      }
    }
  }

  private func fetched(_ flight: Flight, in values: BulkValues<Key, Value>) -> Outcome {
    do {
      return try outcome(of: flight, in: values)
    } catch {
      return Outcome(.failure, error: error)
    }
  }

  /// Ends the flights of a fetch that has failed, which counts once.
  private func end(
    _ flights: [(flight: Flight, stored: Outcome?)],
    because error: any Error,
    _ link: SharedLink<Key, Value>
  ) {
    var launched: [Flight] = []
    for (index, item) in flights.enumerated() {
      let outcome = failure(error, of: item.flight, stored: item.stored, link)
      launched += finish(item.flight, with: outcome, countsFailure: index == 0, isBulk: true)
    }
    launch(launched)
  }
}
