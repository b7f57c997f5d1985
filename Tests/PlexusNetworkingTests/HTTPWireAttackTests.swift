import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Answers on the wire that are after the credentials, the memory or the time of a client.
@Suite(.fewAtOnce)
struct `A fetch under attack` {
  private let origin: LoopbackOrigin
  private let other: LoopbackOrigin
  private let seen = Guarded<[OriginRequest]>([])

  init() throws {
    origin = try LoopbackOrigin()
    other = try LoopbackOrigin()
    other.route("/*") { [seen] request in
      seen.withLock { $0.append(request) }
      return OriginResponse(text: "other")
    }
  }

  private func fetch(_ address: String? = nil, rules: HTTPRules = .patient) async throws -> String {
    let text = (address ?? origin.address) + "/value"
    let fetcher = HTTPFetcher(
      URLRequest(url: try #require(URL(string: text))),
      transport: patientTransport,
      rules: rules,
      decode: { String(decoding: $0, as: UTF8.self) }
    )
    guard case .value(let text, _, _) = try await fetcher.fetch(FetchContext(previousValue: nil))
    else { throw URLError(.badServerResponse) }
    return text
  }

  private func raw(_ text: String, count: Int = 1) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    origin.inject(.raw(Array(lines.joined(separator: "\r\n").utf8)), for: "/value", count: count)
  }

  @Test(arguments: [
    "//127.0.0.1:PORT/there", "http://127.0.0.1:PORT/there", "http://x@127.0.0.1:PORT/there",
  ])
  func `user and password of a URL are not sent to another origin`(location: String) async throws {
    let target = location.replacingOccurrences(of: "PORT", with: "\(other.port)")
    origin.route("/value") { _ in OriginResponse(status: 302, headers: ["Location": target]) }
    #expect(try await fetch("http://user:secret@127.0.0.1:\(origin.port)") == "other")
    let request = try #require(seen.withLock { $0.first })
    let credentials = request.headers["Authorization"] ?? ""
    // The password is `secret` in base 64, after the user.
    #expect(!credentials.contains("c2VjcmV0") && !credentials.contains("dXNlcjpzZWNyZXQ"))
  }

  @Test func `a storm of interim answers ends, with an answer or without`() async throws {
    let storm = String(repeating: "HTTP/1.1 102 Processing\n\n", count: 20_000)
    raw(storm + "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", count: 3)
    do {
      #expect(try await fetch() == "hello")
    } catch {
      #expect((error as? URLError)?.isConnectivityFailure == false, "\(error)")
    }
  }

  @Test(arguments: [
    "Content-Length: 3\nContent-Length: 5\n\nhello",
    "Content-Length: 99999999999999999999\n\nhello",
    "Content-Length: 5x\n\nhello", "Transfer-Encoding: chunked\n\n5;x\nhello\n0",
    "Transfer-Encoding: chunked\n\n-5\nhello\n0\n\n", "Transfer-Encoding: gzip, chunked\n\nzz",
    "Transfer-Encoding: chunked\n\n5\nhelloX\n0\n\n", "Content-Encoding: gzip, gzip\n\nhello",
  ])
  func `an answer with broken framing is never a value of another length`(
    answer: String
  )
    async throws
  {
    raw("HTTP/1.1 200 OK\nConnection: close\n" + answer, count: 3)
    let text = try? await fetch()
    #expect(text == nil || text == "hello", "\(text ?? "")")
  }

  @Test func `an answer after the end of another one is not mistaken for the next one`()
    async throws
  {
    raw(
      "HTTP/1.1 200 OK\nContent-Length: 5\n\nhelloHTTP/1.1 200 OK\nContent-Length: 4\n\nevil"
    )
    origin.route("/value") { _ in OriginResponse(text: "fine") }
    #expect(try await fetch() == "hello")
    for _ in 0..<3 { #expect(try await fetch() == "fine") }
  }

  @Test func `a request that is cancelled before it is sent is not sent`() async throws {
    origin.route("/value") { _ in OriginResponse(text: "value") }
    for _ in 0..<20 {
      let request = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await fetch()
      }
      await #expect(throws: (any Error).self) { try await request.value }
    }
    #expect(origin.statistics.requestCount == 0)
    #expect(try await fetch() == "value")
  }

  @Test func `an error with a large body has its beginning, whatever length it names`() async throws
  {
    let body = String(repeating: "a", count: 40_000)
    var rules = HTTPRules.patient
    rules.maximumBodyBytes = 30_000
    raw("HTTP/1.1 500 No\nConnection: close\n\n" + body)
    let error = await #expect(throws: HTTPStatusError.self) { try await fetch(rules: rules) }
    #expect(error?.status == 500)
    #expect(error?.body.count == 16_384)
  }

  @Test func `cookies of redirects go to their hosts alone`() async throws {
    let target = other.address.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    origin.route("/value") { _ in
      var response = OriginResponse(status: 302, headers: ["Location": target + "/there"])
      response.headers.add("Set-Cookie", "a=1; Path=/; Domain=localhost")
      response.headers.add("Set-Cookie", "b=2; Path=/")
      return response
    }
    var rules = HTTPRules.patient
    let jar = HTTPCookieJar()
    rules.cookies = jar
    #expect(try await fetch(rules: rules) == "other")
    #expect(seen.withLock { $0.first?.headers["Cookie"] } == nil)
    #expect(jar.count == 1)
  }

  @Test(.guarantee(.credentialsStayWithTheirOrigin), arguments: [false, true])
  func `credentials that have left their origin by a redirect do not come back`(
    isFile: Bool
  ) async throws {
    let returned = Guarded<[OriginHeaders]>([])
    let (there, back) = (other.address + "/there", origin.address + "/back")
    origin.route("/value") { _ in OriginResponse(status: 307, headers: ["Location": there]) }
    other.route("/there") { [seen] request in
      seen.withLock { $0.append(request) }
      return OriginResponse(status: 307, headers: ["Location": back])
    }
    origin.route("/back") { request in
      returned.withLock { $0.append(request.headers) }
      return OriginResponse(text: "back")
    }
    let transport = URLSessionTransport(timeout: 600, headers: ["X-Own": "o"])
    let url = try #require(URL(string: origin.address + "/value"))
    let fields = ["Authorization": "Bearer t", "Cookie": "c=1", "Accept": "text/plain"]
    if isFile {
      let loader = MediaLoader(
        directory: MediaTestFolder().url,
        transport: transport,
        rules: .patient,
        retry: .never
      )
      let file = try await loader.request(MediaRequest(url, headers: fields))
      #expect(try Data(contentsOf: file) == Data("back".utf8))
    } else {
      var request = URLRequest(url: url)
      for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
      let fetcher = HTTPFetcher<Data>(
        request,
        transport: transport,
        rules: .patient,
        decode: { $0 }
      )
      _ = try await fetcher.fetch(FetchContext(previousValue: nil))
    }
    let all = seen.withLock { $0.map(\.headers) } + returned.withLock { $0 }
    #expect(all.count == 2)
    for headers in all {
      #expect(headers["Accept"] == "text/plain")
      for name in ["Authorization", "Cookie", "X-Own"] { #expect(headers[name] == nil) }
    }
  }
}
