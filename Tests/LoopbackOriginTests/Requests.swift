import LoopbackOrigin
import TestSupport

/// The requests that a handler has seen.
final class Requests: Sendable {
  private let state = Guarded<[OriginRequest]>([])

  var all: [OriginRequest] { state.withLock { $0 } }

  func append(_ request: OriginRequest) { state.withLock { $0.append(request) } }
}
