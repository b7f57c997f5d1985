public import Testing

/// A trait of tests with exit tests, of which one runs at a time.
///
/// A process of an exit test can inherit the pipe of another one that is started at the same time. The test runner reads
/// that pipe to its end, and blocks its thread until both processes have ended. If the process that has inherited it
/// needs this process, for example its origin or a signal, no thread of the pool may be left for that: the case has threads
/// of its own (see ``TestThreads``).
public struct StartsProcess: TestTrait, TestScoping {
  private static let processes = Turns(1)

  /// Returns the trait for each case of a test.
  public func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
    testCase == nil ? nil : self
  }

  /// Waits for a turn, and runs the case.
  public func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    await Self.processes.take()
    defer { Self.processes.giveBack() }
    try await withTaskExecutorPreference(TestThreads.shared) { try await function() }
  }
}

extension Trait where Self == StartsProcess {
  /// A trait of tests with exit tests, of which one runs at a time.
  public static var startsProcess: StartsProcess { StartsProcess() }
}
