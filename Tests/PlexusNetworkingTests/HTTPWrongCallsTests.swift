import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Calls whose error names what is wrong with them.
@Suite(.fewAtOnce)
struct `A wrong call` {
  private func cache(_ rules: HTTPRules = .patient) -> HTTPCache<String> {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "text") }
    return HTTPCache(transport: transport, rules: rules, clock: ManualClock()) {
      String(decoding: $0.body, as: UTF8.self)
    }
  }

  private func request(_ text: String, method: String = "GET") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: text)))
    request.httpMethod = method
    return request
  }

  @Test(
    .guarantee(.wrongHTTPCallsSayWhatIsWrong),
    arguments: ["POST", "PUT", "DELETE", "OPTIONS", "get"]
  )
  func `the error for a response to a method that is not cached names the method`(
    method: String
  ) async throws {
    let cache = cache()
    let request = try request("https://a.example/value", method: method)
    // URLRequest corrects the case of known methods.
    guard request.httpMethod != "GET" else { return }
    let error = await #expect(throws: HTTPRequestError.self) { try await cache.response(request) }
    #expect(error == .methodNotCached(method))
    #expect(
      error?.description
        == "The answer to \(method) is not cached; send it with request(_:), or ask with GET or HEAD."
    )
    #expect(try await cache.request(request) == "text")
  }

  @Test(.guarantee(.wrongHTTPCallsSayWhatIsWrong))
  func `the error for a scheme other than http and https names the URL`() async throws {
    for text in ["ftp://a.example/value", "file:///etc/hosts", "http:///value", "value"] {
      var rules = HTTPRules.patient
      rules.allowsFileURLs = false
      let cache = cache(rules)
      await #expect(throws: URLError(.unsupportedURL)) { try await cache.request(request(text)) }
    }
  }

  @Test(.guarantee(.wrongHTTPCallsSayWhatIsWrong))
  func `the error for a request without a URL says so`() async throws {
    let cache = cache()
    for method in ["GET", "POST"] {
      var request = try request("https://a.example/value", method: method)
      request.url = nil
      let error = await #expect(throws: URLError.self) { try await cache.request(request) }
      #expect(error?.code == .badURL)
      #expect(cache.cachedValue(request) == nil)
    }
  }

  @Test(.guarantee(.wrongHTTPCallsSayWhatIsWrong))
  func `the error for a wrong request of a file names the file, its folder, or the method`()
    async throws
  {
    let folder = FileManager.default.temporaryDirectory.appending(path: "plexus-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "a file.txt")
    try Data("content".utf8).write(to: file)
    let cache = cache()
    #expect(try await cache.request(file) == "content")
    await #expect(throws: URLError(.fileIsDirectory)) { try await cache.request(folder) }
    await #expect(throws: URLError(.fileDoesNotExist)) {
      try await cache.request(folder.appending(path: "none"))
    }
    for method in ["POST", "PUT", "DELETE"] {
      var change = URLRequest(url: file)
      change.httpMethod = method
      let error = await #expect(throws: HTTPRequestError.self) { try await cache.request(change) }
      #expect(error == .methodOfFile(method, file))
    }
    #expect(cache.cachedValue(URLRequest(url: file)) != nil, "Nothing was changed")
  }
}
