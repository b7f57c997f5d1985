import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `What the interleaving harness reports` {
    @Test
    func `the interleaving harness finds the lost update of a read, a suspension and a write`()
      throws
    {
      let failure = try failure { try forEveryInterleaving(lostUpdate) }
      guard case .threw(let error) = failure.reason else {
        Issue.record("wrong reason: \(failure)")
        return
      }
      #expect(error as? Wrong == Wrong(what: "1"))
    }

    @Test func `the interleaving harness reports a task that never finishes`() throws {
      let failure = try failure {
        try forEveryInterleaving { try await Gate().wait() }
      }
      #expect(failure.description.contains("some task never finished"))
      #expect(failure.schedule == [])
    }

    @Test func `the interleaving harness reports a deadlock that only one order has`() throws {
      let scenario: @Sendable () async -> Void = {
        // The second one succeeds if it runs after the first.
        let gate = Gate()
        let log = Journal()
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

    @Test func `the interleaving harness reports a scenario that does not end`() throws {
      let failure = try failure {
        try forEveryInterleaving(jobLimit: 50) { while !Task.isCancelled { await hop() } }
      }
      #expect(failure.description.contains("still not done after 50 jobs"))
    }

    @Test func `the largest limit is as good as none`() throws {
      let failure = try failure {
        try forEveryInterleaving(jobLimit: .max) {
          try? await Gate().wait()
          await hop()
        }
      }
      #expect(failure.description.contains("some task never finished"))
    }

    @Test func `a limit of no jobs runs nothing, and says so`() throws {
      let log = Journal()
      for limit in [0, -1, .min] {
        let failure = try failure {
          try forEveryInterleaving(jobLimit: limit) { log.append("ran") }
        }
        #expect(failure.description.contains("still not done after \(limit) jobs"))
      }
      #expect(log.entries.isEmpty)
      #expect(try forEveryInterleaving(deviations: -1) { await hop() } == 1)
    }

    @Test func `the harness cancels a scenario that does not end, so that it can clean up`() throws
    {
      let log = Journal()
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

    @Test func `the interleaving harness reports a task that is enqueued again endlessly`() throws {
      let failure = try failure {
        try forEveryInterleaving(jobLimit: 50) { while !Task.isCancelled { await nothing() } }
      }
      #expect(failure.description.contains("still not done after 50 jobs"))
    }

    @Test func `the harness reports a scenario that differs from run to run in the same order`()
      throws
    {
      let runs = Journal()
      let failure = try failure {
        try forEveryInterleaving {
          // Each run has more choices.
          let tasks = (0...runs.append("run")).map { _ in Task { await hop() } }
          for task in tasks { await task.value }
        }
      }
      guard case .notRepeatable = failure.reason else {
        Issue.record("wrong reason: \(failure)")
        return
      }
    }

    @Test func `the interleaving harness replays the order of a failure`() throws {
      let log = Journal()
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
          let log = Journal()
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

    private func failure(of body: () throws -> Void) throws -> InterleavingFailure {
      try #require(#expect(throws: InterleavingFailure.self, performing: body))
    }
  }
}

@concurrent private func nothing() async {}

private actor Account {
  private(set) var balance = 0

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
