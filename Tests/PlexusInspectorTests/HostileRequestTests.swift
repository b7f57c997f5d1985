import Foundation
import Plexus
import PlexusInspector
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Requests that an inspector refuses` {
  private func response(
    of inspector: Inspector,
    _ lines: String...,
    method: String = "GET"
  ) async throws -> RawClient.Response {
    let client = try await RawClient(port: inspector.port)
    try await client.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
    return try await client.response(to: method)
  }

  @Test(.guarantee(.inspectorIsReachedOnlyFromItsMachine))
  func `only requests that name this machine and the port are answered`() async throws {
    let inspector = try await Inspector()
    let (port, path) = (inspector.port, "/\(inspector.token)/")
    for host in ["127.0.0.1:\(port)", "localhost:\(port)", "LOCALHOST:\(port)"] {
      #expect(
        try await response(of: inspector, "GET \(path) HTTP/1.1", "Host: \(host)").status == 200
      )
    }
    for host in [
      "evil.example", "evil.example:\(port)", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:\(port)",
      "",
      "localhost:\(port)@evil", "[::1]:\(port)", "127.0.0.2:\(port)",
    ] {
      let refused = try await response(of: inspector, "GET \(path) HTTP/1.1", "Host: \(host)")
      #expect(refused.status == 403, "\(host)")
      #expect(!refused.body.contains("evil"))
    }
    let proxied = try await response(
      of: inspector,
      "GET http://evil.example\(path) HTTP/1.1",
      "Host: 127.0.0.1:\(port)"
    )
    #expect(proxied.status == 403)
  }

  @Test(.guarantee(.inspectorIsReachedOnlyFromItsMachine))
  func `requests of pages of other origins are refused`() async throws {
    let inspector = try await Inspector()
    let lines = ["GET /\(inspector.token)/ HTTP/1.1", "Host: localhost:\(inspector.port)"]
    let own = "http://localhost:\(inspector.port)"
    for (field, status) in [
      ("Origin: \(own)", 200), ("Sec-Fetch-Site: same-origin", 200), ("Sec-Fetch-Site: none", 200),
      ("Origin: http://evil.example", 403), ("Origin: null", 403), ("Origin: \(own).evil", 403),
      ("Origin: http://127.0.0.1:\(inspector.port)", 403), ("Origin: https://localhost", 403),
      ("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-site", 403),
    ] {
      let client = try await RawClient(port: inspector.port)
      try await client.send((lines + [field]).joined(separator: "\r\n") + "\r\n\r\n")
      let response = try await client.response()
      #expect(response.status == status, "\(field)")
      #expect(response.headers["access-control-allow-origin"] == nil)
      #expect(response.headers["set-cookie"] == nil)
    }
  }

  @Test(.guarantee(.inspectorIsReachedOnlyFromItsMachine))
  func `a wrong token gets the same answer as a wrong path, which echoes nothing`()
    async throws
  {
    let inspector = try await Inspector()
    let host = "Host: 127.0.0.1:\(inspector.port)"
    let wrong = String(inspector.token.dropLast()) + (inspector.token.hasSuffix("a") ? "b" : "a")
    var bodies: Set<String> = []
    for path in [
      "/", "/\(wrong)/", "/\(inspector.token.dropLast())/", "/\(inspector.token)a/", "//",
      "/\(inspector.token.uppercased())/", "/<script>alert(1)</script>/",
      "/\(inspector.token)/unknown?source=1", "/\(inspector.token)/entries?source=99",
      "/\(inspector.token)/entries", "/\(inspector.token)/../\(inspector.token)/",
    ] {
      let response = try await response(of: inspector, "GET \(path) HTTP/1.1", host)
      #expect(response.status == 404, "\(path)")
      bodies.insert(response.body)
    }
    #expect(bodies.count == 1)
  }

  @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
  func `an inspector is only read`(method: String) async throws {
    let inspector = try await Inspector()
    let refused = try await response(
      of: inspector,
      "\(method) /\(inspector.token)/ HTTP/1.1",
      "Host: 127.0.0.1:\(inspector.port)",
      method: method
    )
    #expect(refused.status == 405 && refused.headers["allow"] == "GET")
  }

  @Test func `large requests are refused`() async throws {
    let inspector = try await Inspector()
    let (start, host) = ("GET /\(inspector.token)/", "Host: 127.0.0.1:\(inspector.port)")
    let long = String(repeating: "x", count: 8_192)
    #expect(try await response(of: inspector, "\(start)\(long) HTTP/1.1", host).status == 414)
    let field = "X-Long: \(long)"
    #expect(try await response(of: inspector, "\(start) HTTP/1.1", host, field).status == 431)
    let body = "Content-Length: 8193"
    #expect(try await response(of: inspector, "\(start) HTTP/1.1", host, body).status == 413)
    let search = "\(start)entries?source=1&search=\(long.prefix(8_000)) HTTP/1.1"
    #expect(try await response(of: inspector, search, host).status == 404)
  }

  @Test func `answers to malformed and large requests have the same restrictions as others`()
    async throws
  {
    let inspector = try await Inspector()
    let (start, host) = ("GET /\(inspector.token)/", "Host: 127.0.0.1:\(inspector.port)")
    let long = String(repeating: "x", count: 8_192)
    let expected = try await response(of: inspector, "GET /wrong/ HTTP/1.1", host).headers
    for (lines, status) in [
      (["nonsense", host], 400), (["\(start) HTTP/1.1", host, "Content-Length: 8193"], 413),
      (["\(start)\(long) HTTP/1.1", host], 414), (["\(start) HTTP/1.1", host, "X: \(long)"], 431),
      (["TRACE / HTTP/1.1", host], 501), (["\(start) HTTP/3.0", host], 505),
    ] {
      let client = try await RawClient(port: inspector.port)
      try await client.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
      let refused = try await client.response()
      #expect(refused.status == status)
      for name in [
        "cache-control", "content-security-policy", "cross-origin-opener-policy",
        "cross-origin-resource-policy", "referrer-policy", "x-content-type-options",
        "x-frame-options",
      ] {
        let value = try #require(expected[name])
        #expect(refused.headers[name] == value, "\(status): \(name)")
      }
    }
  }

  @Test(.guarantee(.inspectorIsBounded))
  func `a refused request ends its connection, whatever else the client has sent`() async throws {
    let inspector = try await Inspector()
    let client = try await RawClient(port: inspector.port)
    let refused = "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(inspector.port)\r\n\r\n"
    try await client.send(String(repeating: refused, count: 3))
    let text = try await client.receiveToEnd()
    #expect(text.hasPrefix("HTTP/1.1 404 ") && text.split(separator: "HTTP/1.1 ").count == 1)
  }

  @Test func `every answer forbids caches, frames, referrers and other sources`() async throws {
    let inspector = try await Inspector()
    let host = "Host: 127.0.0.1:\(inspector.port)"
    var nonces: Set<String> = []
    for path in ["/\(inspector.token)/", "/\(inspector.token)/", "/wrong/"] {
      let response = try await response(of: inspector, "GET \(path) HTTP/1.1", host)
      #expect(response.headers["cache-control"] == "no-store")
      #expect(response.headers["referrer-policy"] == "no-referrer")
      #expect(response.headers["x-content-type-options"] == "nosniff")
      let policy = try #require(response.headers["content-security-policy"])
      #expect(policy.hasPrefix("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
      #expect(!policy.contains("unsafe") && !policy.contains("*"))
      guard path != "/wrong/" else { continue }
      #expect(policy.contains("connect-src 'self'"))
      let nonce = try #require(policy.firstMatch(of: /script-src 'nonce-([a-z2-7]{32})'/)?.1)
      nonces.insert(String(nonce))
      #expect(response.body.contains("<script nonce=\"\(nonce)\">"))
      #expect(!response.body.contains("{{nonce}}") && !response.body.contains("innerHTML"))
      #expect(!response.body.contains("src=") && !response.body.contains("https:"))
    }
    #expect(nonces.count == 2)
  }

  @Test(.guarantee(.inspectorIsBounded))
  func `a fifth page is refused until one of the others is closed`() async throws {
    let inspector = try await Inspector()
    var pages: [TestPage] = []
    for _ in 0..<4 { pages.append(try await TestPage(inspector)) }
    #expect(try await inspector.request("stream").response().status == 503)
    pages.removeLast()
    var status = 503
    while status == 503 {
      let client = try await inspector.request("stream")
      status = try await client.response(to: "HEAD").status
    }
    #expect(status == 200)
  }

  @Test(.guarantee(.inspectorIsBounded))
  func `a thousand connections do not keep a page from being served`() async throws {
    let inspector = try await Inspector()
    let map = MultiplexerMap<Int, Int> { $0 }
    inspector.add(map, named: "map")
    let page = try await TestPage(inspector)
    _ = try await page.frame()
    var idle: [RawClient] = []
    for number in 0..<1_000 {
      let client = try await RawClient(port: inspector.port)
      // Some send the beginning of a request.
      if number % 3 == 0 { try? await client.send("GET /\(inspector.token)/ HT") }
      // The others are closed by this side at once, so that the test has few descriptors.
      if idle.count < 100 { idle.append(client) }
    }
    _ = try await page.frame()
    #expect(try await inspector.request("").response().status == 200)
    withExtendedLifetime(idle) {}
  }

  @Test(.guarantee(.inspectorIsReachedOnlyFromItsMachine))
  func `an inspector listens on no other address`() async throws {
    let inspector = try await Inspector()
    let addresses = Host.current().addresses.filter { $0 != "127.0.0.1" && !$0.contains(":") }
    for address in addresses {
      let isReachable = try await blocking { Self.connects(to: address, port: inspector.port) }
      #expect(!isReachable, "\(address)")
    }
    #expect(inspector.url.host() == "127.0.0.1")
  }

  private static func connects(to address: String, port: UInt16) -> Bool {
    #if canImport(Glibc)
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    defer { close(descriptor) }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = port.bigEndian
    target.sin_addr.s_addr = inet_addr(address)
    return withUnsafePointer(to: &target) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
