import Foundation
import Plexus
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce, .timeLimit(.minutes(20)))
struct `The entries of a cache of HTTP` {
  let cache = HTTPCache<Int>(
    transport: ClosureTransport { _, request, receiver in
      guard request.url?.lastPathComponent != "failing" else { throw URLError(.badServerResponse) }
      try receiver.take(request, headers: ["Cache-Control": "max-age=60"], "value")
    },
    rules: .patient,
    clock: ManualClock()
  ) { $0.body.count }

  private func request(_ path: String, method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: "https://a.example/" + path)))
    request.httpMethod = method
    return request
  }

  private var count: Int { cache.index.withLock { $0.count } }

  @Test func `are forgotten without a value, and the others can still be invalidated`() async throws
  {
    #expect(try await cache.request(request("kept")) == 5)
    for number in 0..<10_000 {
      let key = HTTPCacheKey(try request("\(number)"))
      cache.index.withLock { $0.answer([], key.url, fields: key.fields, key: key) }
    }
    #expect(count == 10_001)
    #expect(try await cache.request(request("new")) == 5)
    #expect(count == 2)
    #expect(cache.cachedValue(try request("kept")) == 5)
    _ = try await cache.request(request("kept", method: "POST"))
    #expect(cache.cachedValue(try request("kept")) == nil)
  }

  @Test func `do not pile up with failures`() async throws {
    for number in 0..<20 {
      var request = try request("failing")
      request.setValue("\(number)", forHTTPHeaderField: "X-Request-ID")
      await #expect(throws: URLError.self) { try await cache.request(request) }
      #expect(count == 0)
    }
  }
}
