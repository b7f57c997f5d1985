public import Foundation

/// A request for a remote file: its URL, and what a URL alone does not say.
///
/// Every method of ``MediaLoader`` and ``ImageLoader`` that takes a URL takes a request, too.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// /// Loads a photo by a URL whose query is a signature that changes from hour to hour.
/// func photo(_ signed: URL, by loader: MediaLoader, token: String) async throws -> URL {
///   var request = MediaRequest(signed)
///   request.cacheKey = signed.path()
///   request.headers["Authorization"] = "Bearer " + token
///   return try await loader.request(request)
/// }
/// ```
///
/// ## Identity
///
/// Requests with equal cache keys stand for the same file: they share a download, and the file that one of
/// them has brought is returned to all of them. Without a cache key, the absolute URL without its fragment is
/// the key.
///
/// ## Header fields and credentials
///
/// Header fields are sent and are not part of the key. A file that was downloaded with the credentials of one
/// user is therefore returned to a request with those of another user, or with none. Where accounts must not
/// see each other's files, put the account into the ``cacheKey``, or clear the loader when the account
/// changes. Header fields are not written to disk.
///
/// Requests with the same key and different URLs or header fields share a download, too. If the server
/// rejects the one that was sent, the other callers do not get its error: their own requests are sent.
///
/// ## Topics
///
/// ### Creating a request
/// - ``init(_:headers:cacheKey:priority:variant:)``
///
/// ### What is requested
/// - ``url``
/// - ``headers``
/// - ``variant``
///
/// ### How it is stored and how urgent it is
/// - ``cacheKey``
/// - ``priority``
public struct MediaRequest: Sendable, Hashable {
  /// The URL of the file, of scheme http, https or file.
  public var url: URL

  /// The header fields to send, by name.
  ///
  /// The loader sets `Accept-Encoding`, `Range` and the conditional fields (`If-...`) itself; such fields are
  /// not sent from here.
  public var headers: [String: String]

  /// The identity of the file; `nil` for its URL.
  ///
  /// Texts that are equal by Unicode's canonical equivalence are the same key. The path extension of the key
  /// becomes that of the local file, which some players and decoders depend on.
  public var cacheKey: String?

  /// The urgency of the download; `nil` for the priority of the calling task.
  ///
  /// Among downloads that wait for a connection to the same host, the most urgent one is next. Prefetching
  /// ignores it.
  public var priority: TaskPriority?

  /// The image that an ``ImageLoader`` makes of the file; `nil` for the whole one.
  ///
  /// Its decoder reads it from ``MediaResponse/variant``. Requests that differ in it share the file and the download, and
  /// each has an image of its own in memory. A ``MediaLoader`` ignores it.
  public var variant: ImageVariant?

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - url: The URL of the file.
  ///   - headers: The header fields to send.
  ///   - cacheKey: The identity of the file; `nil` for its URL.
  ///   - priority: The urgency; `nil` for that of the calling task.
  ///   - variant: The image that is made of the file; `nil` for the whole one.
  public init(
    _ url: URL,
    headers: [String: String] = [:],
    cacheKey: String? = nil,
    priority: TaskPriority? = nil,
    variant: ImageVariant? = nil
  ) {
    self.url = url
    self.headers = headers
    self.cacheKey = cacheKey
    self.priority = priority
    self.variant = variant
  }

  /// Hashes the properties of the request.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(url)
    hasher.combine(headers)
    hasher.combine(cacheKey)
    hasher.combine(priority?.rawValue)
    hasher.combine(variant)
  }
}
