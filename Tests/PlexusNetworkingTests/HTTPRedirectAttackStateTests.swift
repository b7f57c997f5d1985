import Foundation
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Redirects that are after the credentials of a request.
@Suite(.fewAtOnce) struct `Redirects under attack` {
  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  /// Returns the request after a redirect; `nil` if it is refused or no redirect.
  private func redirected(
    from text: String = "https://user:secret@a.example/x/y",
    to location: String
  ) throws -> URLRequest? {
    var request = URLRequest(url: try url(text))
    request.setValue("secret", forHTTPHeaderField: "aUTHORIZATION")
    request.setValue("secret", forHTTPHeaderField: "COOKIE")
    var route = try HTTPRoute(
      request,
      headers: ["x-tOKEN": "secret"],
      rules: HTTPRedirectRules(credentials: ["AUTHORIZATION", "cookie"])
    )
    let response = try #require(
      HTTPURLResponse(
        url: try url(text),
        statusCode: 302,
        httpVersion: nil,
        headerFields: ["Location": location]
      )
    )
    guard let target = HTTPRoute.target(of: response, from: route.url) else { return nil }
    do {
      try route.follow(target, status: 302)
    } catch {
      return nil
    }
    return route.request
  }

  @Test(arguments: [
    "//b.example/", "https://b.example/", "https://a.example:444/", "https://a.example.b.example/",
    "https://a.example@b.example/", "https://a.example:443@b.example/", "//a.example\\@b.example/",
    "https://b.example\\@a.example.b.example/", "https:\\\\b.example\\", "\\\\b.example/",
    "https://b.example#@a.example/", "https://b.example?@a.example/",
    "https://a.example%2eb.example/",
    "https://a.example\u{3002}b.example/", "https://b.example:443:443/", "///b.example/",
    "https:///b.example/", "https:b.example", "https://a.example:/", "https://a.example:0443/",
    "https://a.example:65979/", "https://a.example:4294967739/", "\thttps://b.example/",
    "https://a.ex\tample.b.example/", "https://[::1]/", "https://a.example./",
  ])
  func `redirects never take credentials elsewhere`(location: String) throws {
    guard let request = try redirected(to: location) else { return }
    let target = try #require(request.url)
    let isHome =
      target.scheme == "https" && target.host() == "a.example"
      && [nil, 443].contains(target.port)
    guard !isHome else { return }
    let text = "\(target.absoluteString) \(request.allHTTPHeaderFields ?? [:])"
    #expect(!text.contains("secret"), "\(location)")
  }

  @Test(arguments: [
    "file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "http://a.example/",
    "HTTP://a.example/", "ftp://a.example/", "unix:///x", "data:,x", "about:blank", "javascript:x",
    "http+unix://x/", "gopher://a.example/", "mailto:x@a.example", "https:", "https://",
    "https://:443",
  ])
  func `redirects never lead to another scheme`(location: String) throws {
    let request = try redirected(to: location)
    let target = request?.url
    #expect(
      target == nil || target?.host() == "a.example" && target?.scheme == "https",
      "\(location)"
    )
  }

  @Test(arguments: ["/x\r\nX: y", "/x\nX: y", "/x\rX: y", "/x y", "/\0", "/é", "/%0d%0aX:y"])
  func `redirects put no control characters into what is sent`(location: String) throws {
    guard let request = try redirected(to: location) else { return }
    let text = try #require(request.url).absoluteString
    #expect(text.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "\(text)")
  }
}
