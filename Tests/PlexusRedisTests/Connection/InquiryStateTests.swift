import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The wait of a thread for credentials` {
  /// Asks on a thread of its own, with as much time as a test needs.
  private func value(of inquiry: Inquiry<Int>, _ calls: Log<Int>) async throws -> Int {
    try await withCheckedThrowingContinuation { continuation in
      do {
        _ = try LoopThread {
          var result: Result<Int, any Error>?
          while result == nil {
            do throws(Inquiry<Int>.Failure) {
              let value = try inquiry.value(until: .now + 20_000_000) {
                let number = calls.count
                calls.append(number)
                // The first call does not end, and does not notice its cancellation.
                if number == 0 { await Log<Void>.untilNever() }
                return number
              } isStopped: {
                false
              }
              result = .success(value)
            } catch {
              guard error.reason.contains("in time") else {
                result = .failure(error)
                break
              }
            }
          }
          if let result { continuation.resume(with: result) }
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  @Test(.guarantee(.hangingCredentialsBlockNoConnection))
  func `a thread that waits for credentials is answered although one call does not end`()
    async throws
  {
    let calls = Log<Int>()
    let inquiry = Inquiry<Int>(try WakePipe(), patience: .milliseconds(100))
    // On a slow machine, later calls can be too late as well.
    let value = try await value(of: inquiry, calls)
    #expect(value >= 1)
    #expect(calls.entries.prefix(value + 1) == Array(0...value)[...])
  }
}

extension Log where Entry == Void {
  /// Waits without an end.
  fileprivate static func untilNever() async {
    await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
  }
}
