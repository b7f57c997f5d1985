import Foundation
import TestSupport
import Testing

@testable import PlexusNetworking

/// Cookies of servers that mean harm.
@Suite(.fewAtOnce) struct `Cookies under attack` {
  private func place(_ text: String) throws -> HTTPCookieState.Place {
    let url = try #require(URL(string: text))
    return try #require(HTTPCookieState.Place(url))
  }

  private func sent(_ field: String, from: String, to: String? = nil) throws -> String? {
    var state = HTTPCookieState()
    for field in HTTPCookieState.fields(field) {
      state.store(field, from: try place(from), now: 1_000)
    }
    return state.header(for: try place(to ?? from), now: 1_000)
  }

  @Test(
    .guarantee(.hostileCookiesAreRejected),
    arguments: [
      "a=1\r\nX: y", "a=1\nX: y", "a=1\rX: y", "a\u{1}=1", "a=\0", "a=1; Path=/\u{7f}",
    ]
  )
  func `cookies with control characters are rejected`(field: String) throws {
    #expect(try sent(field, from: "https://a.example/") == nil)
  }

  /// The cookies that are sent over https after one was set over https and another one over http.
  private func sent(afterSecure secure: String, _ plain: String, to path: String) throws -> String?
  {
    var state = HTTPCookieState()
    state.store(secure, from: try place("https://a.example/"), now: 1_000)
    state.store(plain, from: try place("http://a.example/"), now: 1_000)
    return state.header(for: try place("https://a.example" + path), now: 1_000)
  }

  @Test(
    .guarantee(.secureCookiesAreNotShadowed),
    arguments: [
      ("s=1; Secure; Path=/", "s=2; Path=/"), ("s=1; Secure; Path=/", "s=2; Path=/login"),
      ("s=1; Secure; Path=/login", "s=2; Path=/login/now"),
      ("s=1; Secure; Path=/; Domain=a.example", "s=2; Path=/login"),
      ("s=1; Secure; Path=/", "s=2; Path=/login; Domain=a.example"),
      ("s=1; Secure; Path=/", "s=; Path=/; Max-Age=0"),
    ]
  )
  func `cookies over http neither replace nor shadow a secure one`(
    secure: String,
    plain: String
  ) throws {
    #expect(try sent(afterSecure: secure, plain, to: "/login/now") == "s=1")
  }

  @Test
  func `cookies over http are accepted if they come after the secure one or have another name`()
    throws
  {
    let login = "s=1; Secure; Path=/login"
    #expect(try sent(afterSecure: login, "s=2; Path=/", to: "/login") == "s=1; s=2")
    #expect(try sent(afterSecure: login, "t=2; Path=/login", to: "/login") == "s=1; t=2")
    #expect(
      try sent(afterSecure: "s=1; Path=/login", "s=2; Path=/login/a", to: "/login/a") == "s=2; s=1"
    )
  }

  @Test func `cookies with a tab between words are accepted`() throws {
    #expect(try sent("a=1\t2", from: "https://a.example/") == "a=1\t2")
  }

  @Test(.guarantee(.hostileCookiesAreRejected))
  func `cookies without a name do not remove the attributes of the cookies before them`() throws {
    let field = "a=1; Path=/; Secure,flag"
    #expect(try sent(field, from: "https://a.example/", to: "http://a.example/") == nil)
    #expect(try sent(field, from: "https://a.example/") == "a=1")
    #expect(
      try sent("a=1; Path=/x,flag", from: "https://a.example/", to: "https://a.example/") == nil
    )
  }

  @Test(arguments: ["com.", ".com.", "com", "."])
  func `cookies are not set for all hosts of a registry, also with a dot at the end`(
    domain: String
  ) throws {
    let field = "a=1; Domain=\(domain)"
    #expect(try sent(field, from: "http://evil.com./", to: "http://bank.com./") == nil)
    #expect(try sent(field, from: "http://evil.com/", to: "http://bank.com/") == nil)
  }

  @Test(arguments: ["[::1]", "127.0.0.1", "[fe80::1]"])
  func `cookies of an address are for that address, and not for a part of it`(host: String) throws {
    #expect(try sent("a=1", from: "http://\(host)/") == "a=1")
    #expect(try sent("a=1; Domain=0.1", from: "http://\(host)/") == nil)
    #expect(try sent("a=1; Domain=1]", from: "http://\(host)/") == nil)
  }

  @Test(
    .guarantee(.hostileCookiesAreRejected),
    arguments: [
      "Thu, 01 Jan 1970 00:00:00 GMT", "Thu Jan  1 00:00:00 1970",
      "Thursday, 01-Jan-70 00:00:00 GMT",
      "Thu, 1-Jan-1970 0:00:00 GMT", "1970 Jan 1 00:00:00", "01 January 1970 00:00:00",
      "00:00:00 1 jan 1970",
    ]
  )
  func `cookies expire by every form of a date`(date: String) throws {
    #expect(try sent("a=1; Expires=\(date)", from: "http://a.example/") == nil)
    #expect(try sent("a=1; Path=/, a=; Path=/; Expires=\(date)", from: "http://a.example/") == nil)
  }

  @Test(arguments: ["", "no date", "Thu, 99 Jan 1970 00:00:00 GMT", "Jan", "01 Jan 1970", "1600"])
  func `cookies do not expire by what is no date`(date: String) throws {
    #expect(try sent("a=1; Expires=\(date)", from: "http://a.example/") == "a=1")
  }

  @Test(arguments: ["-1", "0", "-99999999999999999999999"])
  func `cookies expire by any Max-Age that is not positive`(number: String) throws {
    #expect(try sent("a=1; Max-Age=\(number)", from: "http://a.example/") == nil)
  }

  @Test(.guarantee(.hostileCookiesAreRejected))
  func `cookies of one host do not evict cookies of another one`() throws {
    var state = HTTPCookieState()
    let (own, evil) = (try place("http://a.example/"), try place("http://evil.example/"))
    state.store("session=1", from: own, now: 0)
    for number in 0..<1_500 { state.store("c\(number)=1", from: evil, now: 0) }
    #expect(state.header(for: own, now: 0) == "session=1")
    #expect(state.cookies.count == 1_000)
  }
}
