import TestSupport
import Testing

@testable import LoopbackOrigin

@Suite(.fewAtOnce) struct `A request parser` {
  private let simple = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
  private let posted = "POST /b%20c?d=e HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

  @Test func `a request parser finds the same requests for any division of the bytes`() throws {
    let stream = Array((simple + "\r\n" + posted + simple + "GET / HTTP/1.0\n\n").utf8)
    let whole = events([stream])
    #expect(whole.count == 4)
    for cut in 1..<stream.count {
      #expect(events([Array(stream[..<cut]), Array(stream[cut...])]) == whole, "cut at \(cut)")
    }
    #expect(events(stream.map { [$0] }) == whole)
  }

  @Test func `a request parser finds the same error for any division of the bytes`() throws {
    let stream = Array((simple + "GET / HTTP/1.1\r\nHost : x\r\n\r\n").utf8)
    for cut in 1..<stream.count {
      let events = events([Array(stream[..<cut]), Array(stream[cut...])])
      #expect(events.count == 2)
      #expect(events.last == .failure(status: 400))
    }
  }

  @Test func `a request parser keeps no bytes of complete requests`() {
    var parser = RequestParser(limits: OriginLimits())
    parser.append(Array((posted + posted + "GET").utf8))
    while case .request = parser.next() {}
    #expect(parser.bufferedCount == 3)
  }

  @Test func `a request parser parses the parts of a request`() throws {
    let text = """
      POST /a%2Fb/%C3%A9//c?x=1&y&z=a%26b+c&=&x=2#top HTTP/1.1\r
      host:  x \t\r
      X-One: 1\r
      x-one: 2\r
      Content-Length: 2\r
      \r
      ok
      """
    guard case .request(let request, let keepsAlive) = events([Array(text.utf8)]).first else {
      Issue.record("no request")
      return
    }
    #expect(request.method == .post)
    #expect(request.target == "/a%2Fb/%C3%A9//c?x=1&y&z=a%26b+c&=&x=2#top")
    #expect(request.path == "/a/b/é//c")
    #expect(request.pathComponents == ["a/b", "é", "c"])
    #expect(request.queryItems.map(\.name) == ["x", "y", "z", "", "x"])
    #expect(request.queryItems.map(\.value) == ["1", nil, "a&b+c", "", "2"])
    #expect(request.query("x") == "1")
    #expect(request.query("y") == nil)
    #expect(request.headers["HOST"] == "x")
    #expect(request.headers["X-One"] == "1, 2")
    #expect(request.headers.values(of: "x-ONE") == ["1", "2"])
    #expect(request.body == Array("ok".utf8))
    #expect(keepsAlive)
  }

  @Test(arguments: [
    ("http://127.0.0.1:80/a?b=c", "/a"),
    ("HTTP://origin", "/"),
    ("http://origin?b=c", "/"),
    ("*", "*"),
    ("/", "/"),
    ("//a", "//a"),
    ("/a?", "/a"),
    ("/?/b", "/"),
  ])
  func `a request parser finds the path of a target`(target: String, path: String) {
    guard case .request(let request, _) = event("OPTIONS \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
    else {
      Issue.record("no request")
      return
    }
    #expect(request.path == path)
  }

  @Test(arguments: [
    ("HTTP/1.1", "", true),
    ("HTTP/1.1", "Connection: close\r\n", false),
    ("HTTP/1.1", "Connection: x, Close\r\n", false),
    ("HTTP/1.0", "", false),
    ("HTTP/1.0", "Connection: keep-alive\r\n", true),
    ("HTTP/1.7", "", true),
  ])
  func `a request parser determines whether the connection is kept open`(
    version: String,
    field: String,
    goesOn: Bool
  ) {
    guard
      case .request(_, let keepsAlive) = event("GET / \(version)\r\nHost: x\r\n\(field)\r\n")
    else {
      Issue.record("no request")
      return
    }
    #expect(keepsAlive == goesOn)
  }

  @Test func `a request parser asks a waiting client for the body once`() {
    let head = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n"
    var parser = RequestParser(limits: OriginLimits())
    parser.append(Array(head.utf8))
    #expect(parser.next() == .expectsContinue)
    #expect(parser.next() == .needsMore)
    parser.append(Array("ok".utf8))
    guard case .request = parser.next() else {
      Issue.record("no request")
      return
    }
    // The body has already arrived, so the client does not wait.
    parser.append(Array((head + "ok").utf8))
    guard case .request = parser.next() else {
      Issue.record("no second request")
      return
    }
  }

  @Test(arguments: [10, 100])
  func `a request parser refuses a head that is larger than its limit, complete or not`(limit: Int)
  {
    let head = "GET / HTTP/1.1\r\nHost: " + String(repeating: "x", count: limit) + "\r\n\r\n"
    let expected = limit < 16 ? 414 : 431
    for text in [head, String(head.dropLast(4)), String(head.prefix(limit + 1))] {
      var parser = RequestParser(limits: OriginLimits(headBytes: limit))
      parser.append(Array(text.utf8))
      #expect(parser.next() == .failure(status: expected))
    }
  }

  @Test func `a request parser refuses a complete head that is one byte larger than its limit`() {
    var parser = RequestParser(limits: OriginLimits(headBytes: simple.utf8.count - 1))
    parser.append(Array((simple + simple).utf8))
    #expect(parser.next() == .failure(status: 431))
  }

  @Test func `a request parser accepts a head that is exactly as large as its limit`() {
    var parser = RequestParser(limits: OriginLimits(headBytes: simple.utf8.count))
    parser.append(Array((simple + simple).utf8))
    for _ in 0..<2 {
      guard case .request = parser.next() else {
        Issue.record("no request")
        return
      }
    }
  }

  @Test(arguments: [(3, true), (4, false), (5, false)])
  func `a request parser refuses a body that is larger than its limit`(limit: Int, refuses: Bool) {
    var parser = RequestParser(limits: OriginLimits(bodyBytes: limit))
    parser.append(Array(posted.utf8))
    #expect((parser.next() == .failure(status: 413)) == refuses)
  }

  private func event(_ text: String) -> RequestParser.Event? {
    events([Array(text.utf8)]).first
  }

  /// Returns the requests in the pieces of a stream, and the error that ends them.
  private func events(_ pieces: [[UInt8]]) -> [RequestParser.Event] {
    var parser = RequestParser(limits: OriginLimits())
    var events: [RequestParser.Event] = []
    for piece in pieces {
      parser.append(piece)
      reading: while true {
        let event = parser.next()
        switch event {
        case .needsMore: break reading
        case .expectsContinue: continue
        case .request: events.append(event)
        case .failure: return events + [event]
        }
      }
    }
    return events
  }
}
