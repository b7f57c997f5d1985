import Foundation
import PlexusTesting
import Synchronization
import Testing

extension `Every order of jobs` {
  @Suite(.serialized, .timeLimit(.minutes(5)))
  struct `The interleaving harness` {
    @Test func `tries every outcome of two tasks of two steps, and no other`() throws {
      let outcomes = Log()
      let count = try forEveryInterleaving {
        let log = Log()
        async let first: Void = log.append("a", thenAfterAHop: "b")
        async let second: Void = log.append("1", thenAfterAHop: "2")
        _ = await (first, second)
        outcomes.append(log.text)
      }
      #expect(Set(outcomes.entries) == ["ab12", "a1b2", "a12b", "1ab2", "1a2b", "12ab"])
      #expect(outcomes.entries.count == count)
    }

    @Test func `tries every order of three children beside two producers, and no other`() throws {
      let outcomes = Log()
      try forEveryInterleaving(deviations: 3) {
        let children = Log()
        let producers = Log()
        await withTaskGroup { group in
          for name in ["a", "b", "c"] { group.addTask { children.append(name) } }
          for name in ["1", "2"] { group.addTask { producers.append(name) } }
        }
        outcomes.append(children.text + producers.text)
      }
      let letters = ["abc", "acb", "bac", "bca", "cab", "cba"]
      #expect(Set(outcomes.entries) == Set(letters.flatMap { [$0 + "12", $0 + "21"] }))
    }

    // First come, first served is abc. One deviation: the second or the third of three jobs first, or
    // the second of the two that are left. Two: both. There is no third choice.
    @Test(arguments: [
      (0, ["abc"]),
      (1, ["abc", "acb", "bac", "cab"]),
      (2, ["abc", "acb", "bac", "bca", "cab", "cba"]),
      (6, ["abc", "acb", "bac", "bca", "cab", "cba"]),
    ])
    func `tries each order once, and none with more deviations than allowed`(
      deviations: Int,
      orders: [String]
    ) throws {
      let outcomes = Log()
      let count = try forEveryInterleaving(deviations: deviations) {
        let log = Log()
        for name in ["a", "b", "c"] {
          Task {
            if log.append(name) == 3 { outcomes.append(log.text) }
          }
        }
      }
      #expect(outcomes.entries.sorted() == orders)
      #expect(count == orders.count)
    }

    @Test func `strays six times from first come, first served if not told otherwise`() throws {
      // Seven times two jobs to choose from: all of the 128 orders but the one that strays each time.
      let count = try forEveryInterleaving {
        for _ in 0..<7 {
          let done = Log()
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

    @Test func `orders actors, groups, streams, manual clocks and cancellation`() throws {
      let outcomes = Log()
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
        // Waits for a sleeper that may have been cancelled before it slept.
        advancer.cancel()
        await advancer.value
      }
      #expect(outcomes.entries.count == count)
      #expect(Set(outcomes.entries) == ["1", "2"])
    }

    @Test func `finds the lost update of a read, a suspension and a write`() throws {
      let failure = try failure { try forEveryInterleaving(lostUpdate) }
      guard case .threw(let error) = failure.reason else {
        Issue.record("wrong reason: \(failure)")
        return
      }
      #expect(error as? Wrong == Wrong(what: "1"))
    }

    @Test func `reports a task that never finishes`() throws {
      let failure = try failure {
        try forEveryInterleaving { try await Gate().wait() }
      }
      #expect(failure.description.contains("some task never finished"))
      #expect(failure.schedule == [])
    }

    @Test func `reports a deadlock that only one order has`() throws {
      let scenario: @Sendable () async -> Void = {
        // The second goes through if it comes after the first.
        let gate = Gate()
        let log = Log()
        async let first: Void = { _ = log.append("first") }()
        async let second: Void = {
          if log.entries.isEmpty { try? await gate.wait() }
        }()
        _ = await (first, second)
      }
      let failure = try failure { try forEveryInterleaving(scenario) }
      guard case .neverFinished = failure.reason else {
        Issue.record("wrong reason: \(failure)")
        return
      }
      #expect(failure.schedule.count { $0 != 0 } == 1)
      #expect(throws: InterleavingFailure.self) {
        try replayInterleaving(failure.schedule, scenario)
      }
      #expect(throws: Never.self) { try replayInterleaving([], scenario) }
    }

    @Test func `reports a scenario that goes on for ever`() throws {
      let failure = try failure {
        try forEveryInterleaving(jobLimit: 50) { while !Task.isCancelled { await hop() } }
      }
      #expect(failure.description.contains("still not done after 50 jobs"))
    }

    @Test func `cancels a scenario that does not come to an end, so that it can clean up`() throws {
      let log = Log()
      #expect(throws: InterleavingFailure.self) {
        try forEveryInterleaving {
          try? await Gate().wait()
          await hop()
          log.append("cleaned up")
        }
      }
      #expect(throws: InterleavingFailure.self) {
        try forEveryInterleaving(jobLimit: 50) {
          while !Task.isCancelled { await hop() }
          log.append("cleaned up")
        }
      }
      #expect(log.entries == ["cleaned up", "cleaned up"])
    }

    @Test func `reports a task that asks to be run again for ever`() throws {
      let failure = try failure {
        try forEveryInterleaving(jobLimit: 50) { while !Task.isCancelled { await nothing() } }
      }
      #expect(failure.description.contains("still not done after 50 jobs"))
    }

    @Test func `a call that waits for nothing is no place to be interrupted`() throws {
      let outcomes = Log()
      try forEveryInterleaving {
        let log = Log()
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
      // A task stands in the queue of the actor as soon as it is on its way.
      (false, ["aAbB", "abAB", "baBA", "bBaA"]),
      (true, ["aAbB", "abAB", "abBA", "baAB", "baBA", "bBaA"]),
    ])
    func `the way to an actor is a place to be interrupted, and to be overtaken after a hop`(
      hops: Bool,
      orders: [String]
    ) throws {
      let outcomes = Log()
      try forEveryInterleaving {
        let log = Log()
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

    @Test func `reports a scenario that differs from run to run in the same order`() throws {
      let runs = Log()
      let failure = try failure {
        try forEveryInterleaving {
          // More to choose from at every run.
          let tasks = (0...runs.append("run")).map { _ in Task { await hop() } }
          for task in tasks { await task.value }
        }
      }
      guard case .notRepeatable = failure.reason else {
        Issue.record("wrong reason: \(failure)")
        return
      }
    }

    @Test func `replays the order of a failure`() throws {
      let log = Log()
      let scenario: @Sendable () async throws -> Void = {
        let tasks = ["a", "b", "c"].map { name in Task { _ = log.append(name) } }
        for task in tasks { await task.value }
        if log.text.hasSuffix("cab") { throw Wrong(what: log.text) }
      }
      let failure = try failure { try forEveryInterleaving(scenario) }

      log.clear()
      #expect(throws: InterleavingFailure.self) {
        try replayInterleaving(failure.schedule, scenario)
      }
      #expect(log.text == "cab")

      log.clear()
      try replayInterleaving([], scenario)
      #expect(log.text == "abc")
    }

    @Test func `a replay of a schedule that does not fit says so`() throws {
      for schedule in [[7], [0, 0, 0, 0, 0, 0, 0, 1]] {
        let failure = try failure {
          try replayInterleaving(schedule) {
            Task { await hop() }
            await hop()
          }
        }
        guard case .notRepeatable = failure.reason else {
          Issue.record("wrong reason: \(failure)")
          continue
        }
      }
    }

    @Test func `a failure is reported with no deviation that it does not need`() throws {
      let failure = try failure {
        try forEveryInterleaving {
          let log = Log()
          let tasks = ["a", "b", "c", "d"].map { name in
            Task {
              await hop()
              log.append(name)
            }
          }
          for task in tasks { await task.value }
          if log.entries.first != "a" { throw Wrong() }
        }
      }
      #expect(failure.schedule.count { $0 != 0 } == 1)
      #expect(failure.schedule.last != 0)
    }

    @Test func `a failure says how to run its order again`() throws {
      let failure = InterleavingFailure(schedule: [0, 2], reason: .threw(Wrong(what: "late")))
      #expect("\(failure)".contains("late"))
      #expect("\(failure)".contains("replayInterleaving([0, 2])"))
    }

    @Test func `what a scenario expects belongs to the test that runs it`() throws {
      withKnownIssue {
        try forEveryInterleaving { Issue.record("expected") }
      }
    }

    @Test func `two threads may run scenarios at once`() async throws {
      try await withThrowingTaskGroup { group in
        for _ in 0..<8 {
          group.addTask {
            let failure = try failure { try forEveryInterleaving(deviations: 2, lostUpdate) }
            guard case .threw = failure.reason else { throw failure }
          }
        }
        try await group.waitForAll()
      }
    }

    @Test func `tasks of other threads go on while a scenario runs`() async throws {
      let meter = Meter()
      let others = Task {
        while !meter.isOver.load(ordering: .acquiring) {
          await hop()
          meter.hops.add(1, ordering: .releasing)
        }
      }
      await withCheckedContinuation { continuation in
        // A thread of its own: the scenario blocks it until the others have made a hundred hops.
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

    @Test func `a scenario that runs scenarios of its own is stopped with a sentence`() async {
      await #expect(processExitsWith: .failure) {
        try forEveryInterleaving { try forEveryInterleaving {} }
      }
    }

    private func failure(of body: () throws -> Void) throws -> InterleavingFailure {
      try #require(#expect(throws: InterleavingFailure.self, performing: body))
    }
  }
}

@concurrent private func nothing() async {}

private struct Wrong: Error, Equatable {
  var what = ""
}

private actor Account {
  private(set) var balance = 0

  func note(_ name: String, in log: Log) {
    log.append(name)
  }

  func deposit() async {
    let before = balance
    await hop()
    balance = before + 1
  }
}

@Sendable private func lostUpdate() async throws {
  let account = Account()
  async let first: Void = account.deposit()
  async let second: Void = account.deposit()
  _ = await (first, second)
  let balance = await account.balance
  guard balance == 2 else { throw Wrong(what: "\(balance)") }
}

private final class Meter: Sendable {
  let hops = Atomic(0)
  let isOver = Atomic(false)
}

private final class Log: Sendable {
  private let state = Mutex<[String]>([])

  var entries: [String] { state.withLock { $0 } }

  var text: String { entries.joined() }

  @discardableResult
  func append(_ entry: String) -> Int {
    state.withLock { entries in
      entries.append(entry)
      return entries.count
    }
  }

  func append(_ first: String, thenAfterAHop second: String) async {
    append(first)
    await hop()
    append(second)
  }

  func clear() { state.withLock { $0 = [] } }
}
