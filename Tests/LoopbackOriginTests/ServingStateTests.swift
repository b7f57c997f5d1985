import TestSupport
import Testing

@testable import LoopbackOrigin

@Suite(.fewAtOnce) struct `The pure parts of an origin` {
  @Test(arguments: [
    (nil, ByteRange.whole),
    ("bytes=0-3", .part(0..<4)),
    ("Bytes=0-0", .part(0..<1)),
    ("bytes=3-", .part(3..<10)),
    ("bytes=9-", .part(9..<10)),
    ("bytes=9-20", .part(9..<10)),
    ("bytes=-3", .part(7..<10)),
    ("bytes=-30", .part(0..<10)),
    ("bytes=-0", .unsatisfiable),
    ("bytes=10-", .unsatisfiable),
    ("bytes=10-12", .unsatisfiable),
    ("bytes=4-3", .whole),
    ("bytes=-", .whole),
    ("bytes=", .whole),
    ("bytes=a-b", .whole),
    ("bytes=0-1,4-5", .whole),
    ("lines=0-1", .whole),
    ("bytes=0-99999999999999999999", .part(0..<10)),
    ("bytes=99999999999999999999-", .unsatisfiable),
    ("bytes=--1", .whole),
  ])
  func `a range selects a part of ten bytes`(field: String?, range: ByteRange) {
    #expect(ByteRange(field, length: 10) == range)
  }

  @Test(arguments: ["bytes=0-", "bytes=-5", "bytes=0-0"])
  func `a range selects no part of an empty body`(field: String) {
    #expect(ByteRange(field, length: 0) == .unsatisfiable)
  }

  @Test(arguments: [
    (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
    (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
    (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
    (1_360_303_200, "Fri, 08 Feb 2013 06:00:00 GMT"),
    (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
    (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
  ])
  func `a date is written in the format of HTTP`(seconds: Int, text: String) {
    #expect(httpDate(secondsSince1970: seconds) == text)
  }

  @Test func `a slow answer pauses before each part of the body`() {
    var transmission = Transmission(
      OriginResponse(body: [1, 2, 3, 4, 5]),
      to: nil,
      fault: .drip(bytes: 2, every: .seconds(1)),
      keepsAlive: true,
      date: ""
    )
    guard case .send = transmission.next() else {
      Issue.record("no head")
      return
    }
    var steps: [Transmission.Step] = []
    while steps.last != .end(.keepAlive) { steps.append(transmission.next()) }
    #expect(
      steps == [
        .pause(.seconds(1)), .send([1, 2]), .pause(.seconds(1)), .send([3, 4]), .pause(.seconds(1)),
        .send([5]), .end(.keepAlive),
      ]
    )
  }

  @Test func `the route with the exact path answers, or else the one with the longest pattern`()
    async
  {
    var routes = RouteTable()
    for pattern in ["/a/*", "/a/b/*", "/a/b/c", "/*"] {
      _ = routes.set({ _ in OriginResponse(text: pattern) }, for: .get, pattern: pattern)
    }
    let expected = [
      "/a/b/c": "/a/b/c", "/a/b/d": "/a/b/*", "/a/b/c/d": "/a/b/*", "/a/b/": "/a/*", "/a/x": "/a/*",
      "/a": "/*", "/x": "/*",
    ]
    for (path, pattern) in expected {
      guard case .handler(let handler) = routes.match(request(path)) else {
        Issue.record("no route answers \(path)")
        continue
      }
      #expect(await handler(request(path)).body == Array(pattern.utf8))
    }
    guard case .unknownPath = routes.match(request("/")) else {
      Issue.record("the pattern does not stand for the path before the asterisk")
      return
    }
  }

  private func request(_ path: String) -> OriginRequest {
    OriginRequest(
      method: .get,
      target: path,
      path: path,
      pathComponents: [],
      queryItems: [],
      headers: [:],
      body: [],
      understandsChunks: true
    )
  }
}
