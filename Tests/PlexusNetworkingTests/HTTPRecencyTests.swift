import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Answers that arrive in another order than their server has made them.
@Suite(.fewAtOnce)
struct `The most recent answer` {
  private let clock = ManualClock()
  private let gates = ["old": Gate(), "new": Gate()]

  /// A cache whose server answers each of `X: old` and `X: new` when its gate opens.
  private func cache(_ vary: String?, dates: [String: String?]) -> HTTPCache<String> {
    let transport = ClosureTransport { [gates] _, request, receiver in
      let name = request.value(forHTTPHeaderField: "X") ?? "other"
      try await gates[name]?.wait()
      var headers = ["Cache-Control": "max-age=100000000"]
      headers["Vary"] = vary
      headers["Date"] = dates[name] ?? nil
      try receiver.take(request, headers: headers, name)
    }
    return Self.cache(transport, clock)
  }

  /// A cache at a time of day after all dates of the tests.
  private static func cache(
    _ transport: ClosureTransport,
    _ clock: ManualClock
  ) -> HTTPCache<String> {
    let now = Date(timeIntervalSince1970: 1_000_000_000)
    return HTTPCache(
      transport: transport,
      rules: .patient,
      clock: clock,
      now: { now },
      decode: { String(decoding: $0.body, as: UTF8.self) }
    )
  }

  private func request(_ x: String?, _ fields: [String: String] = [:]) throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: "https://a.example/value")))
    request.setValue(x, forHTTPHeaderField: "X")
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    return request
  }

  private static let dates = [
    "old": "Sun, 09 Sep 2001 01:40:00 GMT", "new": "Sun, 09 Sep 2001 01:41:00 GMT",
  ]

  @Test(.guarantee(.mostRecentAnswerCounts), arguments: [nil, "Accept", "Accept, Accept-Language"])
  func `the most recent answer wins although an older one arrives last`(vary: String?) async throws
  {
    let cache = cache(vary, dates: Self.dates)
    let (old, new) = try (request("old"), request("new"))
    let first = Task { try await cache.request(old) }
    await gates["old"]?.arrivals(1)
    let second = Task { try await cache.request(new) }
    await gates["new"]?.arrivals(1)
    gates["new"]?.open()
    #expect(try await second.value == "new")
    gates["old"]?.open()
    #expect(try await first.value == "old", "It is the answer to this request")
    for name in ["old", "new", nil] {
      #expect(try await cache.request(request(name)) == "new")
      #expect(cache.cachedValue(try request(name)) == "new")
    }
  }

  @Test(.guarantee(.mostRecentAnswerCounts))
  func `the most recent answer wins over an older one of another Vary field that arrives last`()
    async throws
  {
    let transport = ClosureTransport { [gates] _, request, receiver in
      let name = request.value(forHTTPHeaderField: "X") ?? "other"
      try await gates[name]?.wait()
      var headers = ["Cache-Control": "max-age=100000000", "Date": Self.dates[name] ?? ""]
      headers["Vary"] = name == "new" ? "Accept-Language" : "Accept"
      try receiver.take(request, headers: headers, name)
    }
    let cache = Self.cache(transport, clock)
    let (old, new) = try (request("old"), request("new", ["Accept-Language": "de"]))
    let first = Task { try await cache.request(old) }
    await gates["old"]?.arrivals(1)
    let second = Task { try await cache.request(new) }
    await gates["new"]?.arrivals(1)
    gates["new"]?.open()
    _ = try await second.value
    gates["old"]?.open()
    _ = try await first.value
    // Both are for the first request, only the older one is for the second.
    #expect(try await cache.request(request(nil, ["Accept-Language": "de"])) == "new")
    #expect(try await cache.request(request(nil, ["Accept-Language": "fr"])) == "old")
  }

  @Test(.guarantee(.mostRecentAnswerCounts))
  func `the last answer to arrive wins if dates are equal, missing or in the future`()
    async throws
  {
    let far = "Fri, 31 Dec 2100 23:59:59 GMT"
    let all: [[String: String?]] = [
      [:], ["old": Self.dates["old"], "new": Self.dates["old"]], ["old": far],
    ]
    for (index, dates) in all.enumerated() {
      let cache = cache(nil, dates: dates)
      for gate in gates.values { gate.close() }
      let (old, new) = try (request("old"), request("new"))
      let second = Task { try await cache.request(new) }
      await gates["new"]?.arrivals(index + 1)
      let first = Task { try await cache.request(old) }
      await gates["old"]?.arrivals(index + 1)
      gates["old"]?.open()
      _ = try await first.value
      gates["new"]?.open()
      _ = try await second.value
      #expect(try await cache.request(request(nil)) == "new")
    }
  }

  @Test(.guarantee(.mostRecentAnswerCounts))
  func `the most recent answer is not removed by an older answer to a request with no-cache`()
    async throws
  {
    let cache = cache("X", dates: Self.dates)
    let first = Task { try await cache.request(request("old", ["Cache-Control": "no-cache"])) }
    await gates["old"]?.arrivals(1)
    gates["new"]?.open()
    #expect(try await cache.request(request("new")) == "new")
    gates["old"]?.open()
    #expect(try await first.value == "old")
    #expect(cache.cachedValue(try request("new")) == "new")
  }
}
