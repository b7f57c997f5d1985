import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `A media request` {
  let folder = MediaTestFolder()

  private func loader(_ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(directory: folder.url, transport: transport, rules: .patient, retry: .never)
  }

  private func request(
    _ path: String,
    key: String? = nil,
    token: String? = nil
  ) throws
    -> MediaRequest
  {
    let url = try #require(URL(string: "http://nowhere.invalid/\(path)"))
    return MediaRequest(
      url,
      headers: token.map { ["Authorization": $0] } ?? [:],
      cacheKey: key
    )
  }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  /// A transport that answers with the path, and rejects the tokens that are bad.
  private func checking(_ gate: Gate? = nil) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      if count == 1 { try await gate?.wait() }
      let isBad = request.value(forHTTPHeaderField: "Authorization") == "bad"
      try receiver.take(request, status: isBad ? 401 : 200, request.url?.path ?? "")
    }
  }

  @Test(.guarantee(.equalRequestsShareAFile))
  func `equal cache keys share a file, whatever their URLs`() async throws {
    let transport = checking()
    let loader = loader(transport)
    let file = try await loader.request(request("a.jpg?sign=1", key: "/a.jpg"))
    #expect(try await loader.request(request("a.jpg?sign=2", key: "/a.jpg")) == file)
    #expect(try loader.cachedFile(for: request("elsewhere", key: "/a.jpg")) == file)
    #expect(file.pathExtension == "jpg")
    #expect(transport.names.count == 1)
    // Without a key the URL is the key.
    let plain = try request("b.jpg")
    let other = try await loader.request(plain.url)
    #expect(try await loader.request(request("x", key: plain.url.absoluteString)) == other)
    #expect(try await loader.request(request("x", key: "/b.jpg")) != other)
  }

  @Test(.guarantee(.equalRequestsShareAFile)) func `equal cache keys share a download`()
    async throws
  {
    let gate = Gate()
    let transport = checking(gate)
    let loader = loader(transport)
    let first = try request("a?sign=1", key: "a")
    let second = try request("a?sign=2", key: "a")
    let task = Task { try await loader.request(first) }
    await gate.arrivals(1)
    let progress = Recorder(loader.progress(of: second))
    let other = Task { try await loader.request(second) }
    gate.open()
    #expect(try await task.value == other.value)
    #expect(await progress.finished().last?.receivedBytes == 2)
    #expect(transport.names.count == 1)
  }

  @Test(.guarantee(.equalRequestsShareAFile)) func `keys that are canonically equivalent are one`()
    async throws
  {
    let transport = checking()
    let loader = loader(transport)
    let file = try await loader.request(request("a", key: "caf\u{e9}"))
    #expect(try await loader.request(request("b", key: "cafe\u{301}")) == file)
    #expect(transport.names.count == 1)
  }

  @Test(.guarantee(.headerFieldsAreNotInTheKey))
  func `header fields are sent, except the fields that the loader sets itself`() async throws {
    let transport = checking()
    var request = try request("a", token: "good")
    request.headers["Range"] = "bytes=1-"
    request.headers["if-none-match"] = "*"
    request.headers["Accept-Encoding"] = "gzip"
    request.headers["Accept"] = "image/avif"
    _ = try await loader(transport).request(request)
    let sent = try #require(transport.requests.withLock { $0.first })
    #expect(sent.value(forHTTPHeaderField: "Authorization") == "good")
    #expect(sent.value(forHTTPHeaderField: "Accept") == "image/avif")
    #expect(sent.value(forHTTPHeaderField: "Accept-Encoding") == "identity")
    #expect(sent.value(forHTTPHeaderField: "Range") == nil)
    #expect(sent.value(forHTTPHeaderField: "If-None-Match") == nil)
    #expect(!folder.records.isEmpty)
    for name in folder.records {
      #expect(try !text(folder.url.appending(path: name)).contains("good"))
    }
  }

  @Test(.guarantee(.headerFieldsAreNotInTheKey)) func `header fields are not part of the key`()
    async throws
  {
    let transport = checking()
    let loader = loader(transport)
    let file = try await loader.request(request("a", token: "good"))
    #expect(try await loader.request(request("a", token: "bad")) == file)
    #expect(try await loader.request(request("a", key: "other", token: "good")) != file)
    #expect(transport.names.count == 2)
  }

  @Test(.guarantee(.rejectionsAreNotShared))
  func `a caller does not get the rejection of another caller's request`() async throws {
    let gate = Gate()
    let transport = checking(gate)
    let loader = loader(transport)
    let bad = try request("a", token: "bad")
    let good = try request("a", token: "good")
    let rejected = Task { try await loader.request(bad) }
    await gate.arrivals(1)
    let accepted = (0..<5).map { _ in Task { try await loader.request(good) } }
    gate.open()
    let error = await #expect(throws: HTTPStatusError.self) { try await rejected.value }
    #expect(error?.status == 401)
    for task in accepted { #expect(try await text(task.value) == "/a") }
  }

  @Test(.guarantee(.rejectionsAreNotShared))
  func `an image is shared by its key, and rejected for one caller alone`() async throws {
    let gate = Gate()
    let transport = checking(gate)
    let images = ImageLoader(media: loader(transport)) { String(decoding: $0, as: UTF8.self) }
    let bad = try request("a?1", key: "a", token: "bad")
    let good = try request("a?2", key: "a", token: "good")
    let rejected = Task { try await images.request(bad) }
    await gate.arrivals(1)
    let accepted = Task { try await images.request(good) }
    gate.open()
    await #expect(throws: HTTPStatusError.self) { try await rejected.value }
    #expect(try await accepted.value == "/a")
    #expect(images.cachedImage(for: bad) == "/a")
    #expect(try await images[bad].request() == "/a")
  }

  @Test(.guarantee(.requestsCountInEveryCall))
  func `a file in use and a digest take its key and header fields`() async throws {
    let transport = checking()
    let loader = loader(transport)
    let first = try request("a.jpg?sign=1", key: "/a.jpg", token: "good")
    let again = try request("a.jpg?sign=2", key: "/a.jpg", token: "bad")
    let digest = "355f362d5cc8c3151038e56bef082d872da4b38905875fcbd9965f8cce21a37f"
    #expect(try await loader.withFile(for: first) { try text($0) } == "/a.jpg")
    #expect(try await loader.withFile(for: again) { try text($0) } == "/a.jpg")
    #expect(try await text(loader.request(again, sha256: digest)) == "/a.jpg")
    #expect(try await text(loader.reload(first)) == "/a.jpg")
    await #expect(throws: HTTPStatusError.self) { try await loader.reload(again) }
    await #expect(throws: HTTPStatusError.self) {
      try await loader.request(request("b", token: "bad"), sha256: digest)
    }
    let tokens = transport.requests.withLock { requests in
      requests.map { $0.value(forHTTPHeaderField: "Authorization") }
    }
    #expect(tokens == ["good", "good", "bad", "bad"])
  }

  @Test(.guarantee(.requestsCountInEveryCall))
  func `prefetching sends header fields and stores files by their keys`() async throws {
    let transport = checking()
    let loader = loader(transport)
    let images = ImageLoader(media: loader) { String(decoding: $0, as: UTF8.self) }
    let (files, decoded) = (Prefetcher(loader), Prefetcher(images))
    let names = ["a", "b", "c", "d"]
    let first = try names.map { try request($0 + "?sign=1", key: $0, token: "good") }
    let again = try names.map { try request($0 + "?sign=2", key: $0, token: "bad") }
    loader.prefetch(first[0..<1])
    files.prefetch(first[1..<2])
    images.prefetch(first[2..<3])
    decoded.prefetch(first[3..<4])
    for request in again {
      while loader.cachedFile(for: request) == nil { await Task.detached {}.value }
    }
    for request in again[2...] {
      while images.cachedImage(for: request) == nil { await Task.detached {}.value }
    }
    for (name, request) in zip(names, again) {
      #expect(try await text(loader.request(request)) == "/" + name)
    }
    #expect(transport.names.sorted() == names)
    #expect(
      transport.requests.withLock { requests in
        requests.allSatisfy { $0.value(forHTTPHeaderField: "Authorization") == "good" }
      }
    )
  }
}
