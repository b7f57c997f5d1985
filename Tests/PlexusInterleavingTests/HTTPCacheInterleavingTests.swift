import Foundation
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Answers with the field `X` of the request; `Vary` names it from the second answer on.
private final class EchoTransport: HTTPTransport {
  private let count = Guarded(0)

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    let number = count.withLock { count in
      count += 1
      return count
    }
    await hop()
    let fields = number == 1 ? [:] : ["Vary": "X", "Cache-Control": "max-age=60"]
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url,
        statusCode: 200,
        httpVersion: nil,
        headerFields: fields
      )
    else { throw URLError(.badURL) }
    try receiver.begin(response)
    try receiver.receive(Data((request.value(forHTTPHeaderField: "X") ?? "").utf8))
  }
}

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Requests of a cache of HTTP, in every order` {
    @Test(.guarantee(.varyIsRespected))
    func `a caller never gets an answer whose Vary it does not match`() throws {
      let url = try #require(URL(string: "https://a.example/"))
      try forEveryInterleaving(deviations: 2) {
        let cache = HTTPCache<String>(
          transport: EchoTransport(),
          rules: HTTPRules(totalTimeout: nil, minimumRate: nil)
        ) { String(decoding: $0.body, as: UTF8.self) }
        let request = { @Sendable (value: String) async throws in
          var request = URLRequest(url: url)
          request.setValue(value, forHTTPHeaderField: "X")
          return try await cache.request(request)
        }
        guard try await request("1") == "1" else { throw Wrong() }
        // By the first answer there is no field that selects: both may wait for the second one.
        let one = Task { try await request("1") }
        let two = Task { try await request("2") }
        guard try await one.value == "1", try await two.value == "2" else { throw Wrong() }
      }
    }
  }
}
