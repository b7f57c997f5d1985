internal import Foundation
internal import PlexusSupport

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
  /// The digest of the URL that has answered, if it is another one than was requested: a URL can be a secret.
  var location: String?

  /// Creates the record of a file that has arrived.
  ///
  /// - Parameters:
  ///   - version: The version of the file.
  ///   - now: The time, in seconds since 1970-01-01T00:00Z.
  ///   - redirects: The redirects that have led to it.
  ///   - location: The digest of the URL that they have led to.
  ///   - field: Returns a header field of the answer.
  init(
    version: FileVersion,
    now: Int64,
    redirects: [HTTPRedirect] = [],
    location: String? = nil,
    _ field: (String) -> String?
  ) {
    self.version = version
    self.location = location
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

  /// The validator that decides whether an answer confirms the file.
  var validator: HTTPValidator {
    var validator = HTTPValidator()
    validator.entityTag = entityTag
    validator.lastModified = lastModified
    validator.location = location
    return validator
  }
}

/// The part of an answer that a record is made of.
struct MediaAnswer {
  let redirects: [HTTPRedirect]
  /// The digest of the URL that has answered, if it is another one than was requested.
  let location: String?
  private let fields: [String: String]

  init(_ trail: HTTPTrail, to url: URL, fields: [String: String]) {
    redirects = trail.redirects
    location = Self.location(trail.url, besides: url)
    self.fields = fields
  }

  /// Returns the digest of the URL that has answered, if it is another one than was requested.
  static func location(_ place: URL, besides url: URL) -> String? {
    place == url ? nil : SHA256.hexadecimalDigest(place.absoluteString.utf8)
  }

  subscript(field: String) -> String? { fields[field] }
}

extension MediaFolder {
  /// The time, in seconds since 1970-01-01T00:00Z.
  static var now: Int64 { Int64(Date().timeIntervalSince1970) }
}
