import Foundation
import Plexus
import PlexusNetworking
import PlexusStorage

/// The texts at any number of URLs, kept as long as their servers say, in memory and on disk.
final class Pages: Sendable {
  private let pages: MultiplexerMap<String, String>
  private let repository = MuxRepository()

  /// Opens the folder in which texts outlive the program.
  ///
  /// - Parameter folder: The folder; one in the user's caches if there is none.
  /// - Throws: A `StorageError` if it cannot be used.
  init(folder: URL?) throws {
    var policy = CachePolicy.http
    // The copy on disk tells the server what is there already.
    policy.cacherRead = .beforeFetch
    policy.fetchTimeout = .seconds(10)
    pages = MultiplexerMap(
      id: "pages",
      policy: policy,
      capacity: .cost(16 << 20) { $0.utf8.count },
      // Keys have to be text for a cacher: URLs as strings.
      cacher: try JSONLogCacher<String>(directory: folder)
    ) { (address: String, context: FetchContext<String>) in
      guard let url = URL(string: address) else { throw URLError(.badURL) }
      return try await HTTPFetcher(url) { String(decoding: $0, as: UTF8.self) }.fetch(context)
    }.register(in: repository)
  }

  /// Returns the text at a URL, where it comes from and how old it is.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The text; an old one, with the error, while its server cannot be reached.
  /// - Throws: The error if there is no text.
  func response(_ url: String) async throws -> Response<String> {
    try await pages.response(url)
  }

  /// Writes everything to disk that is not there yet.
  ///
  /// - Throws: A `MuxRepositoryError` that names what could not be written.
  func flush() async throws {
    try await repository.flushAll()
  }
}
