import Foundation
import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `Cookies` {
  private typealias Place = HTTPCookieState.Place

  private func place(_ text: String) throws -> Place {
    let url = try #require(URL(string: text))
    return try #require(Place(url))
  }

  /// Returns the cookies that a URL is sent after an answer from another one.
  private func sent(_ field: String, from: String, to: String, after: Double = 0) throws -> String?
  {
    var state = HTTPCookieState()
    for field in HTTPCookieState.fields(field) {
      state.store(field, from: try place(from), now: 1_000)
    }
    return state.header(for: try place(to), now: 1_000 + after)
  }

  @Test(.guarantee(.cookiesNeedAJar)) func `cookies go to the host that has set them`() throws {
    let origin = "http://a.example/x/y"
    #expect(try sent("a=1", from: origin, to: "http://a.example:99/x/z") == "a=1")
    #expect(try sent("a=1", from: origin, to: "https://A.EXAMPLE/x/") == "a=1")
    for other in ["http://b.example/x/", "http://b.a.example/x/", "http://example/x/"] {
      #expect(try sent("a=1", from: origin, to: other) == nil)
    }
  }

  @Test func `cookies go to hosts below their domain`() throws {
    let origin = "http://www.a.example/"
    for domain in ["a.example", ".a.example", "A.Example", "www.a.example"] {
      #expect(try sent("a=1; Domain=\(domain)", from: origin, to: "http://www.a.example/") == "a=1")
    }
    #expect(try sent("a=1; Domain=a.example", from: origin, to: "http://b.a.example/") == "a=1")
    #expect(try sent("a=1; Domain=a.example", from: origin, to: "http://nota.example/") == nil)
  }

  @Test(
    .guarantee(.cookiesNeedAJar),
    arguments: [
      "example", "b.example", "b.www.a.example", "ww.a.example", "com", "..", "a.example.",
    ]
  )
  func `cookies are not set for a domain that is not the host's`(domain: String) throws {
    let field = "a=1; Domain=\(domain)"
    #expect(try sent(field, from: "http://www.a.example/", to: "http://www.a.example/") == nil)
  }

  @Test func `cookies of an address belong to that address alone`() throws {
    #expect(
      try sent("a=1; Domain=0.0.1", from: "http://127.0.0.1/", to: "http://127.0.0.1/") == nil
    )
    #expect(
      try sent("a=1; Domain=127.0.0.1", from: "http://127.0.0.1/", to: "http://127.0.0.1/") == "a=1"
    )
    #expect(
      try sent("a=1; Domain=localhost", from: "http://localhost/", to: "http://localhost/") == "a=1"
    )
  }

  @Test(
    arguments: [
      ("a=1", "/x/y", "/x/z", true), ("a=1", "/x/y", "/xz", false), ("a=1", "/x", "/y", true),
      ("a=1; Path=/x", "/", "/x", true), ("a=1; Path=/x", "/", "/x/y", true),
      ("a=1; Path=/x", "/", "/xy", false), ("a=1; Path=/x/", "/", "/x/y", true),
      ("a=1; Path=x", "/z/z", "/z/", true), ("a=1; path=/", "/z/z", "/", true),
    ] as [(String, String, String, Bool)]
  )
  func `cookies go to paths below their own`(
    field: String,
    from: String,
    to: String,
    isSent: Bool
  ) throws {
    let sent = try sent(field, from: "http://a.example" + from, to: "http://a.example" + to)
    #expect((sent != nil) == isSent)
  }

  @Test(.guarantee(.cookiesNeedAJar))
  func `secure cookies are set and sent over https alone, and not replaced over http`() throws {
    let (plain, secure) = ("http://a.example/", "https://a.example/")
    #expect(try sent("a=1; Secure", from: secure, to: secure) == "a=1")
    #expect(try sent("a=1; Secure", from: secure, to: plain) == nil)
    #expect(try sent("a=1; Secure", from: plain, to: secure) == nil)
    #expect(try sent("__Secure-a=1", from: secure, to: secure) == nil)
    #expect(try sent("__Host-a=1; Secure; Path=/", from: secure, to: secure) == "__Host-a=1")
    #expect(try sent("__Host-a=1; Secure; Path=/x", from: secure, to: secure + "x") == nil)
    var state = HTTPCookieState()
    state.store("a=1; Secure", from: try place(secure), now: 0)
    state.store("a=2", from: try place(plain), now: 0)
    #expect(state.header(for: try place(secure), now: 0) == "a=1")
  }

  @Test func `cookies expire by Max-Age, or else by Expires`() throws {
    let origin = "http://a.example/"
    #expect(try sent("a=1; Max-Age=5", from: origin, to: origin, after: 4) == "a=1")
    #expect(try sent("a=1; Max-Age=5", from: origin, to: origin, after: 5) == nil)
    let date = "a=1; Expires=Thu, 01 Jan 1970 00:20:00 GMT"
    #expect(try sent(date, from: origin, to: origin, after: 199) == "a=1")
    #expect(try sent(date, from: origin, to: origin, after: 200) == nil)
    #expect(try sent("a=1; Max-Age=900; " + date, from: origin, to: origin, after: 200) == "a=1")
    #expect(try sent("a=1, a=; Max-Age=0", from: origin, to: origin) == nil)
  }

  @Test func `one header field can set several cookies`() {
    #expect(
      HTTPCookieState.fields("a=1; Expires=Thu, 01 Jan 1970 00:20:00 GMT; Path=/, b=2,c=3; Secure")
        == ["a=1; Expires=Thu, 01 Jan 1970 00:20:00 GMT; Path=/", " b=2", "c=3; Secure"]
    )
  }

  @Test func `cookies of longer paths are sent first, and cookies of the same name are replaced`()
    throws
  {
    let field = "a=1; Path=/, b=2; Path=/x, a=3; Path=/, c=; Path=/, =d, e"
    #expect(try sent(field, from: "http://a.example/", to: "http://a.example/x") == "b=2; a=3; c=")
  }

  @Test func `cookies do not fill the memory`() throws {
    var state = HTTPCookieState()
    let origin = try place("http://a.example/")
    state.store("a=" + String(repeating: "a", count: 5_000), from: origin, now: 0)
    #expect(state.cookies.isEmpty)
    for number in 0..<1_005 { state.store("c\(number)=1", from: origin, now: 0) }
    #expect(state.cookies.count == 1_000)
    #expect(state.cookies.first?.name == "c5")
  }
}
