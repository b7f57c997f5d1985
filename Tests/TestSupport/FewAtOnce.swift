import Foundation
public import Testing

/// Lets no more than a few tests of the whole bundle run at once.
///
/// The test runner starts all tests at the same time. Nearly two thousand that share two threads starve
/// each other: those that talk to servers wait beyond their timeouts, and descriptors run out. What waits
/// for its turn has not begun.
public struct FewAtOnce: SuiteTrait, TestTrait, TestScoping {
  /// Whether the present test has its turn: suites in suites take one between them.
  @TaskLocal private static var isInside = false

  private static let turns = Turns(2 * ProcessInfo.processInfo.activeProcessorCount)

  /// Whether it holds for the tests of a suite.
  public var isRecursive: Bool { true }

  /// Waits for a turn, and runs the test.
  public func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard !Self.isInside else { return try await function() }
    await Self.turns.take()
    defer { Self.turns.giveBack() }
    try await Self.$isInside.withValue(true) { try await function() }
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
