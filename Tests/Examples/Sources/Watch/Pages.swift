import Foundation
import Plexus
import PlexusNetworking
import PlexusStorage

/// A cache of the texts at any number of URLs, in memory and on disk, as their servers allow.
final class Pages: Sendable {
  private let pages: MultiplexerMap<String, String>
  private let repository = MuxRepository()

  /// Creates a cache that is persisted in a folder.
  ///
  /// - Parameter folder: The folder, or `nil` for one in the user's caches.
  /// - Throws: A `StorageError` if it cannot be used.
  init(folder: URL?) throws {
    var policy = CachePolicy.http
    // The copy on disk provides the validator of the first request.
    policy.cacherRead = .beforeFetch
    policy.fetchTimeout = .seconds(10)
    pages = MultiplexerMap(
      id: "pages",
      policy: policy,
      capacity: .cost(16 << 20) { $0.utf8.count },
      // A string key is also the name of its stored entry.
      cacher: try JSONLogCacher<String>(directory: folder)
    ) { (address: String, context: FetchContext<String>) in
      guard let url = URL(string: address) else { throw URLError(.badURL) }
      return try await HTTPFetcher(url) { String(decoding: $0, as: UTF8.self) }.fetch(context)
    }.register(in: repository)
  }

  /// Returns the text at a URL, with its source and age.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The text, or the cached text with the error if the server is unreachable.
  /// - Throws: The error of the request if there is no cached text.
  func response(_ url: String) async throws -> Response<String> {
    try await pages.response(url)
  }

  /// Writes changed texts to disk.
  ///
  /// - Throws: A `MuxRepositoryError` with the texts that could not be written.
  func flush() async throws {
    try await repository.flushAll()
  }
}
