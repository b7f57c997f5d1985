import Foundation
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `The interleaving harness` {
    @Test
    func `the interleaving harness tries every outcome of two tasks of two steps, and no other`()
      throws
    {
      let outcomes = Journal()
      let count = try forEveryInterleaving {
        let log = Journal()
        async let first: Void = log.append("a", thenAfterAHop: "b")
        async let second: Void = log.append("1", thenAfterAHop: "2")
        _ = await (first, second)
        outcomes.append(log.text)
      }
      #expect(Set(outcomes.entries) == ["ab12", "a1b2", "a12b", "1ab2", "1a2b", "12ab"])
      #expect(outcomes.entries.count == count)
    }

    @Test
    func `the harness tries every order of three children beside two producers, and no other`()
      throws
    {
      let outcomes = Journal()
      try forEveryInterleaving(deviations: 3) {
        let children = Journal()
        let producers = Journal()
        await withTaskGroup { group in
          for name in ["a", "b", "c"] { group.addTask { children.append(name) } }
          for name in ["1", "2"] { group.addTask { producers.append(name) } }
        }
        outcomes.append(children.text + producers.text)
      }
      let letters = ["abc", "acb", "bac", "bca", "cab", "cba"]
      #expect(Set(outcomes.entries) == Set(letters.flatMap { [$0 + "12", $0 + "21"] }))
    }

    /// An actor that records its calls.
    private actor Notebook {
      private let executor: InterleavedExecutor?
      private(set) var text = ""

      init(isInterleaved: Bool) {
        executor = isInterleaved ? InterleavedExecutor() : nil
      }

      nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor?.asUnownedSerialExecutor() ?? plain.unownedExecutor
      }

      private let plain = Plain()

      func note(_ name: String, thenAfterAHop second: String? = nil) async {
        text += name
        guard let second else { return }
        await hop()
        text += second
      }
    }

    private actor Plain {}

    /// The orders in which an actor runs three waiting calls.
    private func orders(isInterleaved: Bool) throws -> Set<String> {
      let outcomes = Journal()
      try forEveryInterleaving {
        let notebook = Notebook(isInterleaved: isInterleaved)
        await withTaskGroup { group in
          // All of them wait for the actor before it runs the first one.
          for name in ["a", "b", "c"] { group.addTask { await notebook.note(name) } }
        }
        outcomes.append(await notebook.text)
      }
      return Set(outcomes.entries)
    }

    @Test func `the harness runs what waits for an actor in every order if it adopts the executor`()
      throws
    {
      let all: Set = ["abc", "acb", "bac", "bca", "cab", "cba"]
      #expect(try orders(isInterleaved: true) == all)
    }

    @Test func `the harness splits what waits in the queue of an actor that adopts the executor`()
      throws
    {
      let outcomes = Journal()
      try forEveryInterleaving {
        let notebook = Notebook(isInterleaved: true)
        let log = Journal()
        // A call that is in the queue of the actor, and then a task beside it.
        let first = Task {
          await notebook.note("")
          log.append("a")
        }
        let second = Task {
          await notebook.note("")
          log.append("b")
        }
        let beside = Task { log.append("x") }
        _ = await (first.value, second.value, beside.value)
        outcomes.append(log.text)
      }
      #expect(Set(outcomes.entries) == ["abx", "axb", "xab", "bax", "bxa", "xba"])
    }

    @Test func `the interleaving harness runs one call of an actor with the executor at a time`()
      throws
    {
      try forEveryInterleaving {
        let notebook = Notebook(isInterleaved: true)
        async let first: Void = notebook.note("a", thenAfterAHop: "b")
        async let second: Void = notebook.note("1", thenAfterAHop: "2")
        _ = await (first, second)
        let text = await notebook.text
        guard ["ab12", "a1b2", "a12b", "1ab2", "1a2b", "12ab"].contains(text) else {
          throw Wrong(what: text)
        }
      }
    }

    @Test func `the executor serves an actor outside a scenario, in order`() async {
      let notebook = Notebook(isInterleaved: true)
      for name in ["a", "b", "c"] { await notebook.note(name, thenAfterAHop: name) }
      #expect(await notebook.text == "aabbcc")
      await withTaskGroup { group in
        for _ in 0..<100 { group.addTask { await notebook.note("x") } }
      }
      #expect(await notebook.text.count == 106)
    }

    // First in, first out is abc. One deviation: the second or the third of three jobs first, or the second of the two
    // that are left. Two: both. There is no third choice.
    @Test(
      .guarantee(.scenariosRunInEveryOrder),
      arguments: [
        (0, ["abc"]),
        (1, ["abc", "acb", "bac", "cab"]),
        (2, ["abc", "acb", "bac", "bca", "cab", "cba"]),
        (6, ["abc", "acb", "bac", "bca", "cab", "cba"]),
      ]
    )
    func `the harness tries each order once, and none with more deviations than allowed`(
      deviations: Int,
      orders: [String]
    ) throws {
      let outcomes = Journal()
      let count = try forEveryInterleaving(deviations: deviations) {
        let log = Journal()
        for name in ["a", "b", "c"] {
          Task {
            if log.append(name) == 3 { outcomes.append(log.text) }
          }
        }
      }
      #expect(outcomes.entries.sorted() == orders)
      #expect(count == orders.count)
    }

    @Test(.guarantee(.scenariosRunInEveryOrder))
    func `the interleaving harness tries up to six deviations by default`()
      throws
    {
      // Seven choices between two jobs: all 128 orders except the one that deviates each time.
      let count = try forEveryInterleaving {
        for _ in 0..<7 {
          let done = Journal()
          let gate = Gate()
          for name in ["a", "b"] {
            Task {
              if done.append(name) == 2 { gate.open() }
            }
          }
          try await gate.wait()
        }
      }
      #expect(count == 127)
    }

    @Test func `a scenario without a choice has one order`() throws {
      #expect(try forEveryInterleaving {} == 1)
      #expect(try forEveryInterleaving { await hop() } == 1)
    }

    @Test
    func `the interleaving harness orders actors, groups, streams, manual clocks and cancellation`()
      throws
    {
      let outcomes = Journal()
      let count = try forEveryInterleaving(deviations: 3) {
        let clock = ManualClock()
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let sleeper = Task {
          do {
            try await clock.sleep(for: .seconds(1))
            continuation.yield(1)
          } catch {
            continuation.yield(2)
          }
          continuation.finish()
        }
        let canceller = Task { sleeper.cancel() }
        let advancer = Task {
          await clock.sleepers(1)
          clock.advance(by: .seconds(1))
        }
        for await number in stream { outcomes.append("\(number)") }
        await canceller.value
        // Waits for a sleeper that can be cancelled before it sleeps.
        advancer.cancel()
        await advancer.value
      }
      #expect(outcomes.entries.count == count)
      #expect(Set(outcomes.entries) == ["1", "2"])
    }

    @Test func `a call that waits for nothing is no place to be interrupted`() throws {
      let outcomes = Journal()
      try forEveryInterleaving {
        let log = Journal()
        for name in ["a", "1"] {
          Task {
            log.append(name)
            await nothing()
            if log.append(name) == 4 { outcomes.append(log.text) }
          }
        }
      }
      #expect(outcomes.entries.sorted() == ["11aa", "aa11"])
    }

    @Test(arguments: [
      // A task is in the queue of the actor as soon as it is enqueued.
      (false, ["aAbB", "abAB", "baBA", "bBaA"]),
      (true, ["aAbB", "abAB", "abBA", "baAB", "baBA", "bBaA"]),
    ])
    func `the way to an actor is a place to be interrupted, and to be overtaken after a hop`(
      hops: Bool,
      orders: [String]
    ) throws {
      let outcomes = Journal()
      try forEveryInterleaving {
        let log = Journal()
        let account = Account()
        for name in ["a", "b"] {
          Task {
            log.append(name)
            if hops { await hop() }
            await account.note(name.uppercased(), in: log)
            if log.entries.count == 4 { outcomes.append(log.text) }
          }
        }
      }
      #expect(Set(outcomes.entries) == Set(orders))
    }

    @Test func `what a scenario expects belongs to the test that runs it`() throws {
      withKnownIssue {
        try forEveryInterleaving { Issue.record("expected") }
      }
    }

    @Test func `tasks of other threads continue while a scenario runs`() async throws {
      let meter = Meter()
      let others = Task {
        while !meter.isOver.load(ordering: .acquiring) {
          await hop()
          meter.hops.add(1, ordering: .releasing)
        }
      }
      await withCheckedContinuation { continuation in
        // Its own thread: the scenario blocks it until the others have made a hundred hops.
        Thread {
          #expect(throws: Never.self) {
            try forEveryInterleaving {
              let end = meter.hops.load(ordering: .acquiring) + 100
              while meter.hops.load(ordering: .acquiring) < end {}
              await hop()
            }
          }
          continuation.resume()
        }.start()
      }
      meter.isOver.store(true, ordering: .releasing)
      await others.value
    }

    @Test(.startsProcess)
    func `a scenario that runs scenarios of its own is stopped with a sentence`() async {
      await #expect(processExitsWith: .failure) {
        try forEveryInterleaving { try forEveryInterleaving {} }
      }
    }
  }
}

@concurrent private func nothing() async {}

private actor Account {
  func note(_ name: String, in journal: Journal) {
    journal.append(name)
  }
}

private final class Meter: Sendable {
  let hops = Atomic(0)
  let isOver = Atomic(false)
}
