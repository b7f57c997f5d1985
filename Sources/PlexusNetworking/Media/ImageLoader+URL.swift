public import Foundation
public import Plexus

/// The methods of a loader with a URL in place of a request.
extension ImageLoader {
  /// Returns the value of a URL.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The value.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  public nonisolated func request(_ url: URL) async throws -> Image {
    try await request(MediaRequest(url))
  }

  /// A request as a value, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter url: The URL.
  public nonisolated subscript(url: URL) -> Request<Image> { self[MediaRequest(url)] }

  /// Returns the value of a URL if it is in memory, without downloading or decoding anything.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The value; `nil` if there is none in memory.
  public nonisolated func cachedImage(for url: URL) -> Image? {
    cachedImage(for: MediaRequest(url))
  }

  /// Returns the progress of the download of a URL.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The stream, as of ``MediaLoader/progress(of:)-(MediaRequest)``.
  public nonisolated func progress(of url: URL) -> AsyncStream<DownloadProgress> {
    progress(of: MediaRequest(url))
  }

  /// Downloads and decodes a file again, and replaces the value and the file that are there.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The new value.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  @discardableResult
  public nonisolated func reload(_ url: URL) async throws -> Image {
    try await reload(MediaRequest(url))
  }

  /// Removes a value and its file.
  ///
  /// - Parameter url: The URL.
  /// - Throws: What ``MediaLoader/remove(_:)-(MediaRequest)`` throws.
  public nonisolated func remove(_ url: URL) async throws {
    try await remove(MediaRequest(url))
  }

  /// Downloads and decodes files that will be needed, as ``prefetch(_:)-(Sequence<MediaRequest>)`` does.
  ///
  /// - Parameter urls: The URLs.
  @_disfavoredOverload
  public nonisolated func prefetch(_ urls: some Sequence<URL>) {
    prefetch(urls.map { MediaRequest($0) })
  }
}
