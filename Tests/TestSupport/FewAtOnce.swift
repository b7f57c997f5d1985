import Foundation
public import Testing

/// Lets no more than a few tests of the whole bundle run at once.
///
/// The test runner starts all tests at the same time. Nearly two thousand that share two threads starve
/// each other: those that talk to servers wait beyond their timeouts, and descriptors run out. A time
/// limit begins with the cases of a test; a test therefore waits for its turn before that, and its cases
/// wait only for those of the few tests that have theirs.
public struct FewAtOnce: SuiteTrait, TestTrait, TestScoping {
  private enum Scope { case none, test, testCase }

  /// What has its turn at present: a trait of suites in suites comes here once for each of them.
  @TaskLocal private static var scope = Scope.none

  private static let count = 2 * ProcessInfo.processInfo.activeProcessorCount
  private static let tests = Turns(count)
  private static let testCases = Turns(count)

  /// Whether it holds for the tests of a suite.
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
    try await Self.$scope.withValue(scope) { try await function() }
  }
}

extension Trait where Self == FewAtOnce {
  /// Lets no more than a few tests of the whole bundle run at once.
  public static var fewAtOnce: FewAtOnce { FewAtOnce() }
}

/// A number of turns, given out in the order in which they are asked for.
private final class Turns: Sendable {
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
