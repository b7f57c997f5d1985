import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Operations of the loaders, over a transport that answers from memory.
let networkingOperations: [Operation] = mediaOperations + imageOperations + httpOperations

private struct CannedTransport: HTTPTransport {
  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url,
        statusCode: 200,
        httpVersion: "HTTP/1.1",
        headerFields: ["Content-Length": "3", "Cache-Control": "max-age=3600"]
      )
    else { throw URLError(.badURL) }
    try receiver.begin(response)
    try receiver.receive(Data([1, 2, 3]))
  }
}

private func url(_ number: Int) throws -> URL {
  guard let url = URL(string: "https://example.com/files/\(number)") else {
    throw URLError(.badURL)
  }
  return url
}

private func withMedia(_ body: (MediaLoader) async throws -> Void) async throws {
  try await inFolder { folder in
    try await body(MediaLoader(directory: folder, transport: CannedTransport()))
  }
}

// MARK: - Files

private let mediaOperations: [Operation] = [
  Operation("media: init", count: 90) { count in
    try await inFolder { folder in
      for _ in 0..<count { _ = MediaLoader(directory: folder, transport: CannedTransport()) }
    }
  },
  Operation("media: miss", count: 90) { count in
    try await withMedia { media in
      for number in 0..<count { use(try await media.request(url(number)).path.count) }
    }
  },
  Operation("media: hit", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { use(try await media.request(url).path.count) }
    }
  },
  Operation("media: hit with a digest", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      let digest = "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"
      for _ in 0..<count { use(try await media.request(url, sha256: digest).path.count) }
    }
  },
  Operation("media: withFile, a hit", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { use(try await media.withFile(for: url) { $0.path.count }) }
    }
  },
  Operation("media: subscript + request, a hit", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { use(try await media[url].request().path.count) }
    }
  },
  Operation("media: cachedFile(for:)", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      use(try await media.request(url).path.count)
      for _ in 0..<count { use(media.cachedFile(for: url)?.path.count ?? 0) }
    }
  },
  Operation("media: progress(of:) and drop", count: 300) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { _ = media.progress(of: url) }
    }
  },
  Operation("media: prefetch of none", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { media.prefetch([URL]()) }
    }
  },
  Operation("media: reload", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { use(try await media.reload(url).path.count) }
    }
  },
  Operation("media: remove of none", count: 90) { count in
    try await withMedia { media in
      let url = try url(1)
      for _ in 0..<count { try await media.remove(url) }
    }
  },
  Operation("media: hit by a cache key", count: 90) { count in
    try await withMedia { media in
      let request = MediaRequest(try url(1), cacheKey: "one")
      for _ in 0..<count { use(try await media.request(request).path.count) }
    }
  },
  Operation("prefetcher: init + prefetch of none", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { Prefetcher(media).prefetch([URL]()) }
    }
  },
  Operation("prefetcher: pause + resume", count: 300) { count in
    try await withMedia { media in
      let prefetcher = Prefetcher(media)
      for _ in 0..<count {
        prefetcher.pause()
        prefetcher.resume()
      }
    }
  },
  Operation("media: clear of none", count: 90) { count in
    try await withMedia { media in
      for _ in 0..<count { try await media.clear() }
    }
  },
  Operation("media: clearMemory", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { media.clearMemory() }
    }
  },
  Operation("media: pause + resume", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count {
        media.pause()
        media.resume()
      }
    }
  },
  Operation("media: flush", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { try await media.flush() }
    }
  },
  Operation("media: invalidate", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { media.invalidate() }
    }
  },
  Operation("media: removeStored of none", count: 90) { count in
    try await withMedia { media in
      for _ in 0..<count { try await media.removeStored() }
    }
  },
  Operation("media: register + unregister", count: 300) { count in
    try await withMedia { media in
      let repository = MuxRepository()
      for _ in 0..<count { repository.unregister(media.register(in: repository)) }
    }
  },
]

// MARK: - Images

private func withImages(_ body: (ImageLoader<Int>, URL) async throws -> Void) async throws {
  try await withMedia { media in
    let images = ImageLoader(media: media) { $0.count }
    let url = try url(1)
    use(try await images.request(url))
    try await body(images, url)
  }
}

private let imageOperations: [Operation] = [
  Operation("images: init", count: 300) { count in
    try await withMedia { media in
      for _ in 0..<count { _ = ImageLoader(media: media) { $0.count } }
    }
  },
  Operation("images: miss", count: 90) { count in
    try await withMedia { media in
      let images = ImageLoader(media: media) { $0.count }
      for number in 0..<count { use(try await images.request(url(number))) }
    }
  },
  Operation("images: hit", count: 300) { count in
    try await withImages { images, url in
      for _ in 0..<count { use(try await images.request(url)) }
    }
  },
  Operation("images: subscript + request, a hit", count: 300) { count in
    try await withImages { images, url in
      for _ in 0..<count { use(try await images[url].request()) }
    }
  },
  Operation("images: cachedImage(for:)", count: 300) { count in
    try await withImages { images, url in
      for _ in 0..<count { use(images.cachedImage(for: url) ?? 0) }
    }
  },
  Operation("images: hit of a variant", count: 300) { count in
    try await withImages { images, url in
      let request = MediaRequest(url, variant: ImageVariant(width: 120, height: 120))
      for _ in 0..<count { use(try await images.request(request)) }
    }
  },
  Operation("images: remove, with variants", count: 90) { count in
    try await withImages { images, url in
      let request = MediaRequest(url, variant: ImageVariant(width: 120, height: 120))
      use(try await images.request(request))
      for _ in 0..<count { try await images.remove(request) }
    }
  },
  Operation("images: prefetch of none", count: 300) { count in
    try await withImages { images, _ in
      for _ in 0..<count { images.prefetch([URL]()) }
    }
  },
  Operation("images: reload", count: 90) { count in
    try await withImages { images, url in
      for _ in 0..<count { use(try await images.reload(url)) }
    }
  },
  Operation("images: progress(of:) and drop", count: 300) { count in
    try await withImages { images, url in
      for _ in 0..<count { _ = images.progress(of: url) }
    }
  },
  Operation("images: clear of none", count: 90) { count in
    try await withImages { images, _ in
      for _ in 0..<count { try await images.clear() }
    }
  },
  Operation("images: clearMemory", count: 300) { count in
    try await withImages { images, _ in
      for _ in 0..<count { images.clearMemory() }
    }
  },
]

// MARK: - HTTP

private let httpOperations: [Operation] = [
  Operation("CachePolicy.http") { count in
    for _ in 0..<count { use(CachePolicy.http.retry == .never ? 1 : 0) }
  },
  Operation("HTTPStatusError: init + isOriginFailure") { count in
    for number in 0..<count {
      use(HTTPStatusError(status: 400 + number & 127).isOriginFailure ? 1 : 0)
    }
  },
  Operation("URLError: isConnectivityFailure") { count in
    let error = URLError(.notConnectedToInternet)
    for _ in 0..<count { use(error.isConnectivityFailure ? 1 : 0) }
  },
  Operation("DownloadProgress: fraction") { count in
    for number in 0..<count {
      use(Int(DownloadProgress(receivedBytes: Int64(number), totalBytes: 3_000).fraction ?? 0))
    }
  },
  Operation("HTTP fetcher: fetch", count: 90) { count in
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [CannedProtocol.self]
    let transport = URLSessionTransport(configuration: configuration)
    let fetcher = HTTPFetcher(try url(1), transport: transport) {
      $0.count
    }
    for _ in 0..<count { _ = try await fetcher.fetch(FetchContext(previousValue: nil)) }
  },
  Operation("HTTP fetcher: fetch from a transport in memory", count: 90) { count in
    let fetcher = HTTPFetcher(try url(1), transport: CannedTransport()) { $0.count }
    for _ in 0..<count { _ = try await fetcher.fetch(FetchContext(previousValue: nil)) }
  },
  Operation("HTTP fetcher: fetch with a token", count: 90) { count in
    let fetcher = HTTPFetcher(try url(1), transport: try withToken()) { $0.count }
    for _ in 0..<count { _ = try await fetcher.fetch(FetchContext(previousValue: nil)) }
  },
  Operation("HTTP cache: hit", count: 90) { count in
    let cache = HTTPCache<Int>(transport: CannedTransport()) { $0.body.count }
    let url = try url(1)
    for _ in 0..<count { use(try await cache.request(url)) }
  },
  Operation("HTTP cache: hit with a token", count: 90) { count in
    let cache = HTTPCache<Int>(transport: try withToken()) { $0.body.count }
    let url = try url(1)
    for _ in 0..<count { use(try await cache.request(url)) }
  },
]

private func withToken() throws -> TokenTransport<String> {
  TokenTransport(
    base: CannedTransport(),
    origin: try url(0),
    token: Multiplexer { "secret" },
    account: { _ in "ada" },
    authorize: { request, token in request.setValue(token, forHTTPHeaderField: "Authorization") }
  )
}

/// A protocol handler that answers every request of a session from memory.
private final class CannedProtocol: URLProtocol {
  override class func canInit(with request: URLRequest) -> Bool { true }

  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(
        url: url,
        statusCode: 200,
        httpVersion: "HTTP/1.1",
        headerFields: ["Content-Length": "3", "Cache-Control": "max-age=3600"]
      )
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data([1, 2, 3]))
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}
