import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Loading a data publisher, in every order` {
    /// Loads a number; the operation can suspend, and records its cancellation.
    static func load(_ publisher: DataPublisher<Int>, _ value: Int) -> Task<Int, any Error> {
      Task {
        try await publisher.load {
          await hop()
          try Task.checkCancellation()
          return value
        }
      }
    }

    @Test(.guarantee(.lastCancelledCallerCancelsTheLoad))
    func `a cancelled caller never costs another one its value`() throws {
      try forEveryInterleaving {
        let publisher = DataPublisher<Int>()
        let doomed = Self.load(publisher, 1)
        let other = Self.load(publisher, 2)
        let canceller = Task { doomed.cancel() }
        let value = try await other.value
        let state = publisher.state.value
        try Wrong.unless(value == 1 || value == 2, "\(value)")
        try Wrong.unless(state != nil, "the value was not published")
        await canceller.value
        switch await doomed.result {
        case .success(let value): try Wrong.unless(value == 1 || value == 2, "\(value)")
        case .failure(let error): try Wrong.unless(error is CancellationError, "\(error)")
        }
        guard case .loaded = publisher.state else { throw Wrong(what: "\(publisher.state)") }
      }
    }

    @Test
    func `when all callers of a load are cancelled the state goes back, and none keeps waiting`()
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let publisher = DataPublisher<Int>()
        publisher.update(7)
        let tasks = [Self.load(publisher, 1), Self.load(publisher, 2)]
        let cancellers = tasks.map { task in Task { task.cancel() } }
        for canceller in cancellers { await canceller.value }
        var values: [Int] = []
        for task in tasks {
          switch await task.result {
          case .success(let value): values.append(value)
          case .failure(let error): try Wrong.unless(error is CancellationError, "\(error)")
          }
        }
        guard case .loaded(let value) = publisher.state else {
          throw Wrong(what: "\(publisher.state)")
        }
        try Wrong.unless(values.isEmpty == (value == 7), "\(value) after \(values)")
        // It can start again.
        let next = try await Self.load(publisher, 9).value
        try Wrong.unless(next == 9, "joined a dead load: \(next)")
        try Wrong.unless(publisher.state.value == 9, "\(publisher.state)")
      }
    }

    @Test(.guarantee(.secondLoadJoins))
    func `two callers share one load or load one after the other, never at once`() throws {
      try forEveryInterleaving {
        let publisher = DataPublisher<Int>()
        let running = Messenger<Int>()
        let log = running.subscription()
        let callers = (0..<2).map { _ in
          Task {
            try await publisher.load {
              running.send(1)
              await hop()
              running.send(-1)
              return 1
            }
          }
        }
        for caller in callers { _ = try await caller.value }
        running.finish()
        var count = 0
        for await change in log {
          count += change
          try Wrong.unless(count <= 1, "two loads at once")
        }
      }
    }

    @Test(.guarantee(.lateLoadsAreReturnedOnly))
    func `a reset while loading leaves nothing behind, and the caller gets its value`() throws {
      try forEveryInterleaving {
        let publisher = DataPublisher<Int>()
        publisher.update(7)
        let states = publisher.subscription(bufferingPolicy: .unbounded)
        let loading = Self.load(publisher, 1)
        let signOut = Task {
          await hop()
          publisher.reset()
        }
        let value = try await loading.value
        await signOut.value
        try Wrong.unless(value == 1, "\(value)")
        publisher.fail(Wrong(what: "the end"))
        var words: [String] = []
        for await state in states {
          switch state {
          case .unknown: words.append("unknown")
          case .loading(let previous): words.append("loading \(previous ?? 0)")
          case .loaded(let value): words.append("loaded \(value)")
          case .failed: words.append("failed")
          }
          if words.last == "failed" { break }
        }
        let expected = [
          // Before, and while or after loading: states before the reset are skipped.
          ["unknown", "loading 0", "loaded 1", "failed"],
          ["unknown", "failed"],
        ]
        try Wrong.unless(expected.contains(words), "\(words)")
      }
    }

    @Test func `an update while loading is the last word`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(5)) {
        let publisher = DataPublisher<Int>()
        let states = publisher.subscription(bufferingPolicy: .unbounded)
        let loading = Self.load(publisher, 1)
        let canceller = Task {
          await hop()
          loading.cancel()
        }
        let updater = Task {
          await hop()
          publisher.update(2)
        }
        await updater.value
        await canceller.value
        _ = await loading.result
        let last = publisher.state
        publisher.update(3)
        var hasBegun = false
        var isOverruled = false
        for await state in states {
          if state.isLoading { hasBegun = true }
          guard case .loaded(let value) = state else { continue }
          if value == 3 { break }
          if value == 2, hasBegun { isOverruled = true }
          try Wrong.unless(value == 2 || !isOverruled, "a late result was published")
        }
        guard case .loaded(let value) = last else { throw Wrong(what: "\(last)") }
        try Wrong.unless(value == 2 || !isOverruled, "\(value)")
      }
    }

    @Test func `a load that was abandoned while the next has begun does not disturb it`() throws {
      try forEveryInterleaving(deviations: 5) {
        let publisher = DataPublisher<Int>()
        let doomed = Self.load(publisher, 1)
        let canceller = Task { doomed.cancel() }
        await canceller.value
        let next = Self.load(publisher, 2)
        let resetter = Task { publisher.reset() }
        let value = try await next.value
        await resetter.value
        _ = await doomed.result
        try Wrong.unless(value == 1 || value == 2, "\(value)")
        switch publisher.state {
        case .unknown, .loaded: break
        case .loading, .failed: throw Wrong(what: "\(publisher.state)")
        }
      }
    }

    @Test func `a data publisher that is released while it loads lets its callers finish`() throws {
      try forEveryInterleaving {
        var publisher: DataPublisher<Int>? = DataPublisher()
        weak let weakPublisher = publisher
        let states = publisher?.subscription()
        let loading = publisher.map { Self.load($0, 1) }
        let reader = Task {
          var count = 0
          if let states { for await _ in states { count += 1 } }
          return count
        }
        publisher = nil
        let value = try await loading?.value
        try Wrong.unless(value == 1, "\(value ?? 0)")
        try Wrong.unless(await reader.value > 0, "no state was seen")
        try Wrong.unless(weakPublisher == nil, "the publisher is still there")
      }
    }

    /// Loads a publisher whose operation loads another one.
    static func load(
      _ publisher: DataPublisher<Int>,
      by way: DataPublisher<Int>
    ) -> Task<Int, any Error> {
      Task {
        try await publisher.load {
          await hop()
          return try await way.load { 1 }
        }
      }
    }

    @Test func `two publishers that load each other do not deadlock`() throws {
      try forEveryInterleaving {
        let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
        let tasks = [Self.load(first, by: second), Self.load(second, by: first)]
        for task in tasks {
          switch await task.result {
          case .success(let value): try Wrong.unless(value == 1, "\(value)")
          case .failure(let error): try Wrong.unless(error is LoadError, "\(error)")
          }
        }
        for publisher in [first, second] {
          try Wrong.unless(!publisher.state.isLoading, "it loads for nobody")
        }
      }
    }

    @Test func `a circle of loads that is left again is no circle`() throws {
      try forEveryInterleaving(deviations: 3) {
        let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
        let doomed = Self.load(first, by: second)
        let other = Self.load(second, by: first)
        let canceller = Task { doomed.cancel() }
        await canceller.value
        for (task, mayBeCancelled) in [(doomed, true), (other, false)] {
          guard case .failure(let error) = await task.result else { continue }
          let isCancelled = mayBeCancelled && error is CancellationError
          try Wrong.unless(isCancelled || error is LoadError, "\(error)")
        }
        let value = try await Self.load(first, by: second).value
        try Wrong.unless(value == 1, "\(value)")
      }
    }

    @Test func `loads that wait in a line never take that for a circle`() throws {
      try forEveryInterleaving(deviations: 4) {
        let (first, second) = (DataPublisher<Int>(), DataPublisher<Int>())
        let tasks = [
          Self.load(first, by: second), Self.load(first, by: second), Self.load(second, 1),
        ]
        for task in tasks {
          let value = try await task.value
          try Wrong.unless(value == 1, "\(value)")
        }
      }
    }
  }
}
