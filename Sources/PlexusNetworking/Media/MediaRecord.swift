internal import Foundation

/// The properties of a file that its server has named, kept beside the file.
///
/// A file without a record is used all the same: its type is unknown, and it is downloaded again where it would
/// have been revalidated.
struct MediaRecord: Codable, Hashable, Sendable {
  /// The version of the file that the record is about.
  var version: FileVersion
  /// The media type (Content-Type).
  var type: String?
  var entityTag: String?
  var lastModified: String?
  /// The fields about freshness, which hold again after an answer that confirms the file without others.
  var cacheControl: String?
  var expires: String?
  /// When the file becomes stale, in seconds since 1970-01-01T00:00Z.
  var staleFrom: Int64 = 0
  /// Whether the file must not be used once it is stale unless the server confirms it.
  var mustRevalidate = false
  /// The SHA-256 digest, once it has been computed.
  var digest: String?

  /// Creates the record of a file that has arrived.
  ///
  /// - Parameters:
  ///   - version: The version of the file.
  ///   - now: The time, in seconds since 1970-01-01T00:00Z.
  ///   - redirects: The redirects that have led to it.
  ///   - field: Returns a header field of the answer.
  init(
    version: FileVersion,
    now: Int64,
    redirects: [HTTPRedirect] = [],
    _ field: (String) -> String?
  ) {
    self.version = version
    update(now: now, redirects: redirects, field)
  }

  /// Takes over the header fields of an answer that brings or confirms the file.
  mutating func update(
    now: Int64,
    redirects: [HTTPRedirect] = [],
    _ field: (String) -> String?
  ) {
    if let type = field("Content-Type") { self.type = type }
    if let tag = field("ETag") { entityTag = tag }
    if let date = field("Last-Modified") { lastModified = date }
    if let directives = field("Cache-Control") { cacheControl = directives }
    if let expires = field("Expires") { self.expires = expires }
    let (cacheControl, expires) = (cacheControl, expires)
    var freshness = HTTPFreshness(now: now) { name in
      switch name {
      case "Cache-Control": cacheControl
      case "Expires": expires
      default: field(name)
      }
    }
    for redirect in redirects { freshness.limit(by: redirect, now: now) }
    staleFrom = now + (freshness.lifetime ?? 0)
    mustRevalidate = freshness.mustRevalidate
  }

  /// The header fields that ask whether the file has changed; empty if the server has named nothing to ask by.
  var conditions: [String: String] {
    var fields: [String: String] = [:]
    if let entityTag { fields["If-None-Match"] = entityTag }
    if let lastModified { fields["If-Modified-Since"] = lastModified }
    return fields
  }
}
