import Foundation
public import Testing

/// A trait that limits the number of tests that run at the same time.
///
/// The test runner starts all tests at once. Nearly two thousand tests on two threads starve each other:
/// requests to servers time out, and the process runs out of descriptors. A test waits for its turn before its cases
/// start, and its cases wait only for the cases of the few tests that run. Tests of models and states have threads of
/// their own (see ``TestThreads``). Tests that hang end the process (see ``HangWatch``).
public struct FewAtOnce: SuiteTrait, TestTrait, TestScoping {
  private enum Scope { case none, test, testCase }

  /// The scope that has a turn: a trait of nested suites is applied once for each suite.
  @TaskLocal private static var scope = Scope.none

  private static let count = 4 * ProcessInfo.processInfo.activeProcessorCount
  private static let tests = Turns(count)
  private static let testCases = Turns(count)

  /// Whether the trait applies to the tests of a suite.
  public var isRecursive: Bool { true }

  /// Returns the trait for tests and their cases; a suite takes no turn of its own.
  public func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
    test.isSuite ? nil : self
  }

  /// Waits for a turn, and runs the test or its case.
  public func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let scope: Scope = testCase == nil ? .test : .testCase
    guard Self.scope != scope else { return try await function() }
    let turns = testCase == nil ? Self.tests : Self.testCases
    await turns.take()
    defer { turns.giveBack() }
    try await Self.$scope.withValue(scope) {
      if scope == .test {
        try await function()
      } else {
        let threads = TestThreads.areNeeded(by: test) ? TestThreads.shared : nil
        try await HangWatch.observe(test) {
          try await withTaskExecutorPreference(threads) { try await function() }
        }
      }
    }
  }
}

extension Trait where Self == FewAtOnce {
  /// A trait that limits the number of tests that run at the same time.
  public static var fewAtOnce: FewAtOnce { FewAtOnce() }
}

/// A counting semaphore that resumes tasks in order of arrival.
final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Guarded<State>

  init(_ count: Int) {
    state = Guarded(State(free: count))
  }

  func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  func giveBack() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.waiting.isEmpty else {
        state.free += 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
