import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Snapshots and logs, in every order` {
    private struct Happened: Event {
      let number: Int
    }

    @Test(.guarantee(.snapshotsOfFetchesAreComplete))
    func `a first snapshot of fetches at any moment leaves none that has ended`() throws {
      try forEveryInterleaving {
        let cache = Multiplexer { () async throws -> Int in
          await hop()
          return 1
        }
        let first = Task { try await cache.request() }
        let reader = Task { cache.flight?.callerCount }
        let second = Task { try await cache.refresh().request() }
        guard try await first.value == 1, try await second.value == 1 else {
          throw Wrong(what: "a value")
        }
        _ = await reader.value
        guard cache.flight == nil else { throw Wrong(what: "a fetch that has ended") }
      }
    }

    @Test(.guarantee(.postsAreRecorded))
    func `the records of two posts have the order of the handler, and their outcomes`() throws {
      try forEveryInterleaving {
        let bus = EventBus()
        let posts = bus.posts()
        let handled = Log<Int>()
        let token = bus.observe(Happened.self) { event async in
          await hop()
          handled.append(event.number)
        }
        let first = Task { await bus.postAndWait(Happened(number: 1)) }
        let second = Task { await bus.postAndWait(Happened(number: 2)) }
        guard await first.value.handled == 1, await second.value.handled == 1 else {
          throw Wrong(what: "an outcome of a caller")
        }
        var records: [EventPost] = []
        for await post in posts {
          records.append(post)
          if records.count == 2 { break }
        }
        let numbers = records.compactMap { ($0.event as? Happened)?.number }
        guard numbers == handled.entries, records.allSatisfy({ $0.outcome?.handled == 1 }) else {
          throw Wrong(what: "\(numbers), not \(handled.entries)")
        }
        token.cancel()
      }
    }
  }
}
