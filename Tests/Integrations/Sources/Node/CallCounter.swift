import Synchronization

/// The numbers of requests that a node has begun and answered.
final class CallCounter: Sendable {
  private let calls = Mutex((begun: 0, answered: 0))

  var begun: Int { calls.withLock { $0.begun } }
  var answered: Int { calls.withLock { $0.answered } }

  func count<Answer>(_ body: () async throws -> Answer) async rethrows -> Answer {
    calls.withLock { $0.begun += 1 }
    defer { calls.withLock { $0.answered += 1 } }
    return try await body()
  }
}
