public import Foundation
public import Plexus

/// The methods of a loader with a URL in place of a request.
extension MediaLoader {
  /// Returns the local file of a URL, after downloading it if it is not there.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The file; it must not be changed.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  public nonisolated func request(_ url: URL) async throws -> URL {
    try await request(MediaRequest(url))
  }

  /// Returns the local file of a URL if its bytes have a digest.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - sha256: The SHA-256 digest of the file, in hexadecimal digits.
  /// - Returns: The file.
  /// - Throws: What ``request(_:sha256:)-(MediaRequest,_)`` throws.
  public nonisolated func request(_ url: URL, sha256: String) async throws -> URL {
    try await request(MediaRequest(url), sha256: sha256)
  }

  /// Calls a closure with the local file of a URL, which the byte limit does not remove before the closure has
  /// returned.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - body: The work to do with the file. It runs outside of every actor.
  /// - Returns: The result of the closure.
  /// - Throws: What the closure throws, and what ``request(_:)-(MediaRequest)`` throws.
  public nonisolated func withFile<Result: Sendable>(
    for url: URL,
    _ body: @concurrent @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    try await withFile(for: MediaRequest(url), body)
  }

  /// A request as a value, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter url: The URL.
  public nonisolated subscript(url: URL) -> Request<URL> { self[MediaRequest(url)] }

  /// Returns the local file of a URL if it is there, without downloading anything.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The file; `nil` if there is none.
  public nonisolated func cachedFile(for url: URL) -> URL? { cachedFile(for: MediaRequest(url)) }

  /// Returns the progress of the download of a URL.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The stream, as of ``progress(of:)-(MediaRequest)``.
  public nonisolated func progress(of url: URL) -> AsyncStream<DownloadProgress> {
    progress(of: MediaRequest(url))
  }

  /// Downloads a file again and replaces the existing one.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The new file.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  @discardableResult
  public nonisolated func reload(_ url: URL) async throws -> URL {
    try await reload(MediaRequest(url))
  }

  /// Removes a file and its parts.
  ///
  /// - Parameter url: The URL.
  /// - Throws: The system's error if the file cannot be removed.
  public nonisolated func remove(_ url: URL) async throws {
    try await remove(MediaRequest(url))
  }

  /// Downloads files that will be needed, as ``prefetch(_:)-(Sequence<MediaRequest>)`` does.
  ///
  /// - Parameter urls: The URLs.
  @_disfavoredOverload
  public nonisolated func prefetch(_ urls: some Sequence<URL>) {
    prefetch(urls.map { MediaRequest($0) })
  }
}
