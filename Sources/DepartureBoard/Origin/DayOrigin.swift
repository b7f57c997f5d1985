import LoopbackOrigin
import Synchronization

/// The origin on this machine that knows everything of the day.
final class DayOrigin: Sendable {
  private let server: LoopbackOrigin
  private let counters: Counters

  /// Starts an origin.
  ///
  /// - Parameters:
  ///   - day: What it knows.
  ///   - port: The port to serve on; zero for any that is free.
  ///   - latency: How long every answer takes.
  /// - Throws: An error that says why there is none, for instance because the port is taken.
  init(day: Day, port: UInt16, latency: Duration) throws {
    let routes = DayRoutes(day: day)
    let counters = Counters()
    server = try LoopbackOrigin(port: port)
    self.counters = counters
    server.latency = latency
    server.route("/*") { request in
      do {
        guard let answer = try routes.answer(for: request.path) else {
          counters.notFound.add(1, ordering: .relaxed)
          return OriginResponse(json: "null", status: 404)
        }
        if let tag = answer.entityTag, request.headers["If-None-Match"] == tag {
          counters.notModified.add(1, ordering: .relaxed)
        }
        return OriginResponse(answer)
      } catch {
        return OriginResponse(text: "\(error)", status: 500)
      }
    }
  }

  /// The port that it serves on.
  var port: UInt16 {
    server.port
  }

  /// The requests that have reached it.
  var requestCount: Int {
    server.statistics.requestCount
  }

  /// The requests that it has answered with 304.
  var notModifiedCount: Int {
    counters.notModified.load(ordering: .relaxed)
  }

  /// The requests that it has answered with 404.
  var notFoundCount: Int {
    counters.notFound.load(ordering: .relaxed)
  }

  /// Goes away, or comes back on the same port.
  ///
  /// - Parameter isOnline: Whether it is to be there.
  /// - Throws: An error if it cannot come back.
  func setOnline(_ isOnline: Bool) async throws {
    if isOnline { try await server.goOnline() } else { await server.goOffline() }
  }

  /// Stops for good, and frees the port.
  func stop() {
    server.stop()
  }

  private final class Counters: Sendable {
    let notFound = Atomic(0)
    let notModified = Atomic(0)
  }
}

extension OriginResponse {
  /// An answer as it is sent; to whoever has that version already, without its body.
  fileprivate init(_ answer: DayRoutes.Answer) {
    self.init(headers: ["Content-Type": answer.contentType], body: answer.body)
    etag = answer.entityTag
    headers["Cache-Control"] = answer.cacheControl
  }
}
