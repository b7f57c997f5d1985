public import Plexus
public import PlexusNetworking

extension Inspector {
  /// Adds a value that is requested and cached.
  ///
  /// - Parameters:
  ///   - multiplexer: The multiplexer, which is held weakly.
  ///   - name: The name on the page.
  public func add<Value: Sendable>(_ multiplexer: Multiplexer<Value>, named name: String) {
    weak let source = multiplexer
    var probe = CacheProbe(
      numbers: {
        source.map { .init(statistics: $0.statistics, count: $0.cachedValue == nil ? 0 : 1) }
      },
      flights: { limit in
        guard limit > 0 else {
          source?.endFlights()
          return []
        }
        let flight = source?.flight.map { flight in
          CacheProbe.Flight(
            key: nil,
            age: flight.age,
            callerCount: flight.callerCount,
            isWaiting: flight.isWaiting
          )
        }
        return flight.map { [$0] } ?? []
      }
    )
    probe.entries = { _, isIncluded in
      guard let entry = source?.entry, isIncluded(.init(hash: 0) { "the value" }) else { return [] }
      return [
        EntryRow(
          hash: 0,
          key: { ("the value", "the value") },
          value: entry.value,
          error: entry.error,
          state: entry.state,
          age: entry.age,
          timeLeft: entry.timeLeft,
          tags: [],
          cost: 1
        )
      ]
    }
    probe.isSingle = true
    probe.events = { source?.detailedEvents(bufferingPolicy: .bufferingNewest(1_000)) }
    core.add(CacheSource(.cache, probe, core.disclosure), named: name)
  }

  /// Adds a cache.
  ///
  /// - Parameters:
  ///   - map: The cache, which is held weakly.
  ///   - name: The name on the page.
  ///   - describing: A closure that returns the text of a key for the page, for example without personal data. It is held
  ///     until the source is removed, and called for every key that is searched: pages wait for it, so it must be quick. Keys
  ///     with the same text have a row each. The page then shows events of the cache without keys, except the history of an
  ///     entry.
  public func add<Key: Hashable & Sendable, Value: Sendable>(
    _ map: MultiplexerMap<Key, Value>,
    named name: String,
    describing: (@Sendable (Key) -> String)? = nil
  ) {
    weak let source = map
    let describe = describing ?? { "\($0)" }
    var probe = CacheProbe(
      numbers: { source.map { .init(statistics: $0.statistics, count: $0.count) } },
      flights: { limit in
        (source?.flights(limit: limit) ?? []).map { flight in
          CacheProbe.Flight(
            key: describe(flight.key),
            age: flight.age,
            callerCount: flight.callerCount,
            isWaiting: flight.isWaiting
          )
        }
      }
    )
    probe.entries = { limit, isIncluded in
      let entries = source?.entries(limit: limit) { key in
        isIncluded(.init(hash: key.hashValue) { describe(key) })
      }
      return (entries ?? []).map { EntryRow($0, describe) }
    }
    probe.events = { source?.detailedEvents(bufferingPolicy: .bufferingNewest(1_000)) }
    probe.describesKeys = describing != nil
    core.add(CacheSource(.cache, probe, core.disclosure), named: name)
  }

  /// Adds a loader of images, with the images that it has in memory.
  ///
  /// - Parameters:
  ///   - loader: The loader, which is held weakly.
  ///   - name: The name on the page.
  ///   - describing: A closure that returns the text of a key for the page. Keys are usually URLs.
  public func add<Image: Sendable>(
    _ loader: ImageLoader<Image>,
    named name: String,
    describing: @escaping @Sendable (String) -> String = { $0 }
  ) {
    weak let source = loader
    var probe = CacheProbe(
      numbers: { source.map { .init(statistics: $0.statistics, count: nil) } },
      flights: { limit in
        (source?.flights(limit: limit) ?? []).map { CacheProbe.Flight($0, describing) }
      }
    )
    probe.entries = { limit, isIncluded in
      let entries = source?.entries(limit: limit) { key in
        isIncluded(.init(hash: key.hashValue) { describing(key) })
      }
      return (entries ?? []).map { entry in
        EntryRow(
          hash: entry.key.hashValue,
          key: { (describing(entry.key), entry.key) },
          value: nil,
          error: nil,
          state: entry.state,
          age: entry.age,
          timeLeft: nil,
          tags: [],
          cost: entry.cost
        )
      }
    }
    probe.describesKeys = true
    core.add(CacheSource(.loader, probe, core.disclosure), named: name)
  }

  /// Adds a loader of files, with its downloads in progress.
  ///
  /// - Parameters:
  ///   - loader: The loader, which is held weakly.
  ///   - name: The name on the page.
  ///   - describing: A closure that returns the text of a key for the page. Keys are usually URLs.
  public func add(
    _ loader: MediaLoader,
    named name: String,
    describing: @escaping @Sendable (String) -> String = { $0 }
  ) {
    weak let source = loader
    let probe = CacheProbe(
      numbers: { source.map { _ in .init() } },
      flights: { limit in
        (source?.flights(limit: limit) ?? []).map { CacheProbe.Flight($0, describing) }
      }
    )
    core.add(CacheSource(.loader, probe, core.disclosure), named: name)
  }

  /// Adds an event bus.
  ///
  /// From now on, its newest 1,000 posts are recorded, with their events.
  ///
  /// - Parameters:
  ///   - bus: The bus, which is held weakly.
  ///   - name: The name on the page.
  public func add(_ bus: EventBus, named name: String) {
    core.add(BusSource(bus, core.disclosure), named: name)
  }

  /// Adds a store.
  ///
  /// From now on, its newest 100 actions are recorded, each with the states before and after it. A reducer that changes an
  /// array or a dictionary in place copies it, since the state before stays alive.
  ///
  /// - Parameters:
  ///   - store: The store, which is held weakly.
  ///   - name: The name on the page.
  public func add<State: Sendable, Action: Sendable>(
    _ store: Store<State, Action>,
    named name: String
  ) {
    core.add(StoreSource(store, core.disclosure), named: name)
  }

  /// Adds a broadcaster of any other type.
  ///
  /// - Parameters:
  ///   - broadcaster: The broadcaster, which is held weakly if it is an object. A selected part or another value is held until
  ///     it is removed.
  ///   - name: The name on the page.
  public func add(_ broadcaster: some Broadcaster, named name: String) {
    core.add(BroadcasterSource(broadcaster), named: name)
  }

  /// Adds a text about anything else.
  ///
  /// - Parameters:
  ///   - name: The name on the page.
  ///   - snapshot: A closure that returns the text. It is called at most four times a second while a page shows the text, one
  ///     call at a time, and outside any actor. It is held until it is removed or the inspector is stopped.
  public func add(
    named name: String,
    _ snapshot: @escaping @concurrent @Sendable () async -> String
  ) {
    core.add(TextSource(snapshot), named: name)
  }
}

extension EntryRow {
  init<Key, Value>(
    _ entry: MultiplexerMap<Key, Value>.EntrySnapshot,
    _ describe: @escaping @Sendable (Key) -> String
  ) {
    self.init(
      hash: entry.key.hashValue,
      key: { (describe(entry.key), "\(entry.key)") },
      value: entry.value,
      error: entry.error,
      state: entry.state,
      age: entry.age,
      timeLeft: entry.timeLeft,
      tags: entry.tags,
      cost: entry.cost
    )
  }
}

extension CacheProbe.Flight {
  init(_ flight: MediaFlightSnapshot, _ describing: (String) -> String) {
    self.init(
      key: describing(flight.key),
      age: flight.age,
      callerCount: flight.callerCount,
      isWaiting: flight.isWaiting
    )
  }
}
