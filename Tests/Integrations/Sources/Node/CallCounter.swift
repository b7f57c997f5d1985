import Hummingbird
import Synchronization

/// Counts the requests that a node has begun and answered.
final class CallCounter: RouterMiddleware {
  typealias Context = BasicRequestContext

  private let calls = Mutex((begun: 0, answered: 0))

  var begun: Int { calls.withLock { $0.begun } }
  var answered: Int { calls.withLock { $0.answered } }

  @concurrent
  func handle(
    _ request: Request,
    context: Context,
    next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    calls.withLock { $0.begun += 1 }
    defer { calls.withLock { $0.answered += 1 } }
    return try await next(request, context)
  }
}
