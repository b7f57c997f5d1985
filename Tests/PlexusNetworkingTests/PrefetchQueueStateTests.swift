import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce)
struct `The queue of a prefetcher` {
  private let folder = MediaTestFolder()
  private let gate = Gate()

  private func loader() -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: ClosureTransport { [gate] _, request, receiver in
        try await gate.wait()
        try receiver.take(request, "abc")
      },
      rules: .patient,
      retry: .never
    )
  }

  /// URLs of as many hosts.
  private func urls(_ count: Int) throws -> [URL] {
    try (0..<count).map { try #require(URL(string: "http://host\($0).invalid/")) }
  }

  @Test(.guarantee(.fourFilesArePrefetched))
  func `a prefetcher has four in flight from all hosts together, or the given number`() async throws
  {
    let urls = try urls(9)
    let media = loader()
    let images = ImageLoader(media: loader()) { $0.count }
    media.prefetch(urls)
    images.prefetch(urls)
    let (files, decoded) = (Prefetcher(loader()), Prefetcher(ImageLoader(media: loader()) { $0 }))
    let (more, one) = (Prefetcher(loader(), concurrency: 7), Prefetcher(loader(), concurrency: 1))
    for prefetcher in [files, decoded, more, one] { prefetcher.prefetch(urls) }
    let counts = [
      media.prefetches, images.prefetches, files.queue, decoded.queue, more.queue, one.queue,
    ].map(\.counts)
    #expect(counts.map(\.running) == [4, 4, 4, 4, 7, 1])
    #expect(counts.map(\.waiting) == [5, 5, 5, 5, 2, 8])
    gate.open()
    for url in urls { _ = try await media.request(url) }
  }
}
