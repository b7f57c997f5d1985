import LoopbackOrigin
import Synchronization

/// A local origin that serves the data of the day.
final class DayOrigin: Sendable {
  private let server: LoopbackOrigin
  private let counters: Counters

  /// Starts an origin.
  ///
  /// - Parameters:
  ///   - day: The data to serve.
  ///   - port: The port, or zero for any free port.
  ///   - latency: The latency of every response.
  /// - Throws: An error if the origin cannot be started, for example because the port is in use.
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

  /// The port of the origin.
  var port: UInt16 {
    server.port
  }

  /// The number of received requests.
  var requestCount: Int {
    server.statistics.requestCount
  }

  /// The number of requests answered with 304.
  var notModifiedCount: Int {
    counters.notModified.load(ordering: .relaxed)
  }

  /// The number of requests answered with 404.
  var notFoundCount: Int {
    counters.notFound.load(ordering: .relaxed)
  }

  /// Goes offline, or online on the same port.
  ///
  /// - Parameter isOnline: Whether the origin should be online.
  /// - Throws: An error if it cannot go online.
  func setOnline(_ isOnline: Bool) async throws {
    if isOnline { try await server.goOnline() } else { await server.goOffline() }
  }

  /// Stops the origin permanently and frees the port.
  func stop() {
    server.stop()
  }

  private final class Counters: Sendable {
    let notFound = Atomic(0)
    let notModified = Atomic(0)
  }
}

extension OriginResponse {
  /// Creates a response, from which the server omits the body if the client has the same version.
  fileprivate init(_ answer: DayRoutes.Answer) {
    self.init(headers: ["Content-Type": answer.contentType], body: answer.body)
    etag = answer.entityTag
    headers["Cache-Control"] = answer.cacheControl
  }
}
