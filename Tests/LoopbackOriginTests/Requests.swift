import LoopbackOrigin
import Synchronization

/// The requests that a handler has seen.
final class Requests: Sendable {
  private let state = Mutex<[OriginRequest]>([])

  var all: [OriginRequest] { state.withLock { $0 } }

  func append(_ request: OriginRequest) { state.withLock { $0.append(request) } }
}
