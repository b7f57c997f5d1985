import TestSupport
import Testing

/// The suites that run scenarios in every order of their jobs.
///
/// They run one after the other, because concurrent scenarios would only wait for each other, and on their own thread:
/// a scenario occupies its thread until it ends, and a machine with few cores has few threads for tasks. They do not
/// wait for the other tests, because they take the longest.
@Suite(.serialized, .onThreadOfItsOwn) enum `Every order of jobs` {}

/// Runs the tests of a suite on a thread that nothing else uses.
struct OnThreadOfItsOwn: SuiteTrait, TestTrait, TestScoping {
  private static let thread = TestThreads(1)

  var isRecursive: Bool { true }

  func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(Self.thread) {
      if testCase == nil {
        try await function()
      } else {
        try await HangWatch.observe(test, function)
      }
    }
  }
}

extension Trait where Self == OnThreadOfItsOwn {
  /// Runs the tests of a suite on a thread that nothing else uses.
  static var onThreadOfItsOwn: OnThreadOfItsOwn { OnThreadOfItsOwn() }
}
