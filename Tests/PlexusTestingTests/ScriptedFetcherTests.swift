import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A scripted fetcher` {
  @Test(.guarantee(.scriptsRepeatTheirLastResult))
  func `a scripted fetcher returns the results of its script in order, then repeats the last one`()
    async throws
  {
    let fetcher = ScriptedFetcher<Int>([.success(1), .failure(Broken()), .success(3)])
    #expect(try await fetcher.fetch() == 1)
    await #expect(throws: Broken.self) { try await fetcher.fetch() }
    #expect(try await fetcher.fetch() == 3)
    #expect(try await fetcher.fetch() == 3)
    #expect(fetcher.count == 4)
  }

  @Test func `a scripted fetcher repeats a failure, too`() async {
    let fetcher = ScriptedFetcher<Int>([.failure(Broken())])
    for _ in 0..<3 {
      await #expect(throws: Broken.self) { try await fetcher.fetch() }
    }
    #expect(fetcher.count == 3)
  }

  @Test(.guarantee(.scriptsRepeatTheirLastResult))
  func `a scripted fetcher counts fetches when they begin`()
    async throws
  {
    let gate = Gate()
    let fetcher = ScriptedFetcher<Int>([.success(1)], gate: gate)
    #expect(fetcher.count == 0)
    let task = Task { try await fetcher.fetch() }
    await gate.arrivals(1)
    #expect(fetcher.count == 1)
    gate.open()
    #expect(try await task.value == 1)
  }

  @Test func `a scripted fetcher takes the step when the fetch begins, however late it ends`()
    async throws
  {
    let gate = Gate()
    let fetcher = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let first = Task { try await fetcher.fetch() }
    await gate.arrivals(1)
    let second = Task { try await fetcher.fetch() }
    await gate.arrivals(2)
    gate.open()
    #expect(try await second.value == 2)
    #expect(try await first.value == 1)
  }

  @Test func `a fetch that is cancelled at the gate throws, and has used up its step`() async throws
  {
    let gate = Gate()
    let fetcher = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let doomed = Task { try await fetcher.fetch() }
    await gate.arrivals(1)
    doomed.cancel()
    await #expect(throws: CancellationError.self) { try await doomed.value }
    gate.open()
    #expect(try await fetcher.fetch() == 2)
  }

  @Test func `cancellation changes nothing for a scripted fetcher without a gate`() async throws {
    let fetcher = ScriptedFetcher<Int>([.success(1)])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await fetcher.fetch()
    }
    #expect(try await task.value == 1)
  }

  @Test func `a scripted fetcher can be called by a closure or passed as one`() async throws {
    let fetcher = ScriptedFetcher<String>([.success("a")])
    let operation: @concurrent @Sendable () async throws -> String = { try await fetcher.fetch() }
    let reference: @concurrent @Sendable () async throws -> String = fetcher.fetch
    #expect(try await operation() == "a")
    #expect(try await reference() == "a")
  }

  @Test func `a scripted fetcher uses one step for each of many concurrent fetches`() async throws {
    let count = 1_000
    let fetcher = ScriptedFetcher<Int>((0..<count).map { .success($0) })
    let values = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<count { group.addTask { try await fetcher.fetch() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(values == Set(0..<count))
    #expect(fetcher.count == count)
  }

  @Test(.startsProcess) func `a scripted fetcher needs a step`() async {
    await #expect(processExitsWith: .failure) { _ = ScriptedFetcher<Int>([]) }
  }
}
