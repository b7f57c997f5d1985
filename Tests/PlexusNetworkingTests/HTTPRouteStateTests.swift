import Foundation
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce) struct `The way of a request` {
  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  private func route(
    from text: String = "https://a.example/start",
    headers: [String: String] = [:],
    rules: HTTPRedirectRules = HTTPRedirectRules(),
    _ change: (inout URLRequest) -> Void = { _ in }
  ) throws -> HTTPRoute {
    var request = URLRequest(url: try url(text))
    change(&request)
    return try HTTPRoute(request, headers: headers, rules: rules)
  }

  private func response(_ status: Int, _ location: String?) throws -> HTTPURLResponse {
    try #require(
      HTTPURLResponse(
        url: try url("http://a.example/b/c"),
        statusCode: status,
        httpVersion: nil,
        headerFields: location.map { ["location": $0] }
      )
    )
  }

  @Test(.guarantee(.redirectsAreLimited), arguments: [301, 302, 303, 307, 308])
  func `a redirect leads where the answer says`(status: Int) throws {
    let base = try url("http://a.example/b/c")
    for (location, target) in [
      ("/d", "http://a.example/d"), ("d", "http://a.example/b/d"), ("?e", "http://a.example/b/c?e"),
      ("//b.example/", "http://b.example/"), ("https://b.example", "https://b.example"),
      ("file:///etc/passwd", "file:///etc/passwd"),
    ] {
      let found = HTTPRoute.target(of: try response(status, location), from: base)
      #expect(found?.absoluteString == target)
    }
    #expect(HTTPRoute.target(of: try response(status, nil), from: base) == nil)
    #expect(HTTPRoute.target(of: try response(status, ""), from: base) == nil)
  }

  @Test(arguments: [200, 201, 300, 304, 305, 306, 400])
  func `an answer of any other status is no redirect`(status: Int) throws {
    #expect(
      HTTPRoute.target(of: try response(status, "/d"), from: try url("http://a.example/")) == nil
    )
  }

  @Test(
    .guarantee(.redirectsAreLimited),
    arguments: [
      "file:///etc/passwd", "FILE:///etc/passwd", "ftp://localhost/", "data:,a", "about:blank",
      "http:///a", "javascript:a", "http://127.0.0.1:65536/", "http://127.0.0.1:99999/",
      "http://127.0.0.1:18446744073709551696/",
    ]
  )
  func `a redirect leads to http and https, and to a port that exists, only`(target: String) throws
  {
    var route = try route()
    #expect(throws: URLError(.unsupportedURL)) { try route.follow(url(target), status: 302) }
    #expect(throws: URLError(.unsupportedURL)) { try self.route(from: target) }
  }

  @Test(.guarantee(.redirectsAreLimited))
  func `a redirect does not lead from https to http, unless the rules allow it`() throws {
    var secure = try route()
    #expect(throws: URLError(.appTransportSecurityRequiresSecureConnection)) {
      try secure.follow(url("HTTP://a.example/"), status: 302)
    }
    var allowed = try route(rules: HTTPRedirectRules(allowsDowngrade: true))
    try allowed.follow(url("http://a.example/"), status: 302)
    var plain = try route(from: "http://a.example/")
    try plain.follow(url("https://a.example/"), status: 302)
    try plain.follow(url("https://b.example/"), status: 302)
  }

  @Test(.guarantee(.redirectsAreLimited))
  func `a request follows as many redirects as the rules allow`() throws {
    var route = try route(rules: HTTPRedirectRules(limit: 2))
    for _ in 0..<2 { try route.follow(url("https://a.example/"), status: 302) }
    #expect(throws: URLError(.httpTooManyRedirects)) {
      try route.follow(url("https://a.example/"), status: 302)
    }
  }

  @Test(
    .guarantee(.credentialsStayWithTheirOrigin),
    arguments: [
      "https://b.example/", "https://a.example:444/", "https://sub.a.example/",
      "https://a.example.evil/",
    ]
  )
  func `a redirected request loses its credentials at another origin, and for good`(
    other: String
  ) throws {
    var route = try route(headers: ["X-Own": "o", "authorization": "t"]) { request in
      for name in ["Cookie", "proxy-authorization", "Host", "Accept"] {
        request.setValue(name, forHTTPHeaderField: name)
      }
    }
    try route.follow(url("https://A.example:443/2"), status: 302)
    #expect(route.request.value(forHTTPHeaderField: "X-Own") == "o")
    for target in [other, "https://a.example/3"] {
      try route.follow(url(target), status: 302)
      #expect(route.request.url?.absoluteString == target)
      #expect(route.request.allHTTPHeaderFields == ["Accept": "Accept"])
    }
  }

  @Test func `a redirected request keeps its credentials at another origin if the rules allow it`()
    throws
  {
    var route = try route(rules: HTTPRedirectRules(sendsCredentialsToOtherOrigins: true)) {
      $0.setValue("t", forHTTPHeaderField: "Authorization")
      $0.setValue("a.example", forHTTPHeaderField: "Host")
    }
    try route.follow(url("https://b.example/"), status: 302)
    #expect(route.request.allHTTPHeaderFields == ["Authorization": "t"])
  }

  @Test(.guarantee(.credentialsStayWithTheirOrigin))
  func `further fields that the rules name are not sent to another origin`() throws {
    var route = try route(rules: HTTPRedirectRules(credentials: ["X-API-Key"])) {
      $0.setValue("k", forHTTPHeaderField: "x-api-key")
    }
    try route.follow(url("https://b.example/"), status: 302)
    #expect(route.request.allHTTPHeaderFields?.isEmpty != false)
  }

  @Test func `a request gets the fields of the transport that it does not have`() throws {
    let route = try route(headers: ["Accept": "b", "X-Own": "o"]) {
      $0.setValue("a", forHTTPHeaderField: "accept")
    }
    #expect(route.request.value(forHTTPHeaderField: "Accept") == "a")
    #expect(route.request.value(forHTTPHeaderField: "X-Own") == "o")
  }

  @Test(
    arguments: [
      ("POST", 301, "GET"), ("POST", 302, "GET"), ("POST", 303, "GET"), ("POST", 307, "POST"),
      ("POST", 308, "POST"), ("PUT", 301, "PUT"), ("PUT", 302, "PUT"), ("PUT", 303, "GET"),
      ("HEAD", 303, "HEAD"), ("GET", 303, "GET"), ("DELETE", 303, "GET"), ("DELETE", 308, "DELETE"),
    ] as [(String, Int, String)]
  )
  func `a redirected request changes its method as the status says, and then has no body`(
    method: String,
    status: Int,
    result: String
  ) throws {
    var route = try route { request in
      request.httpMethod = method
      request.httpBody = Data([1])
      request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
    }
    try route.follow(url("https://a.example/2"), status: status)
    #expect(route.request.httpMethod == result)
    let isKept = method == result
    #expect(route.request.httpBody == (isKept ? Data([1]) : nil))
    #expect(
      route.request.value(forHTTPHeaderField: "Content-Type") == (isKept ? "text/plain" : nil)
    )
  }

  @Test func `a redirect fails if a body that is a stream would have to be sent again`() throws {
    let change: (inout URLRequest) -> Void = { request in
      request.httpMethod = "POST"
      request.httpBodyStream = InputStream(data: Data([1]))
    }
    var kept = try route(from: "https://a.example/start", change)
    #expect(throws: URLError(.requestBodyStreamExhausted)) {
      try kept.follow(url("https://a.example/2"), status: 307)
    }
    var dropped = try route(from: "https://a.example/start", change)
    try dropped.follow(url("https://a.example/2"), status: 303)
    #expect(dropped.request.httpBodyStream == nil)
  }
}
