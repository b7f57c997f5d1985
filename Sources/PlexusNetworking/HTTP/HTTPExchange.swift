internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A request that was answered.
struct HTTPExchange {
  /// The request.
  let request: URLRequest
  let response: HTTPResponse
  /// The way to the URL that has answered.
  var trail: HTTPTrail
  /// When the answer was there, in seconds since 1970-01-01T00:00Z.
  let arrival: Int64
  /// The seconds that it took.
  let delay: Int64
  /// Whether the request was sent with a token, which is no part of its key as its account is.
  let isOfToken: Bool

  /// Whether the next token of the same account can have another answer.
  var isRejectionOfToken: Bool { isOfToken && [401, 403].contains(response.status) }

  /// A header field of the answer.
  subscript(field: String) -> String? { response.headers[field] }

  /// The address that has answered, if it is another one than was requested.
  private var location: String? {
    response.url == request.url ? nil : response.url.absoluteString
  }

  /// Returns the freshness of the answer.
  ///
  /// - Parameter field: Returns the value of the field of that name, if there is one.
  /// - Returns: The freshness, from the arrival on.
  func freshness(_ field: (String) -> String?) -> HTTPFreshness {
    // 304 is about a value that was kept before.
    let status = response.status == 304 ? 200 : response.status
    var freshness = HTTPFreshness(now: arrival, delay: delay, status: status, field)
    for redirect in trail.redirects { freshness.limit(by: redirect, now: arrival, delay: delay) }
    return freshness
  }

  /// Returns the names of the header fields that have selected the answer, or the redirects to it.
  ///
  /// - Parameter known: The names that a value came with, which a 304 may leave out.
  /// - Returns: The names, separated by commas, or `nil` if there are none.
  func vary(_ known: HTTPValidator? = nil) -> String? {
    let fields = [self["Vary"] ?? known?.vary] + trail.redirects.map { $0.headers["Vary"] }
    let names = fields.compactMap(\.self)
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// When the server has made the answer, in seconds since 1970-01-01T00:00Z, and not later than its arrival.
  var date: Int64 {
    min(self["Date"].flatMap { HTTPDate.seconds($0, now: arrival) } ?? arrival, arrival)
  }

  /// Whether a 304 is about a value, and not about another version or another location.
  func confirms(_ known: HTTPValidator) -> Bool {
    known.isConfirmed(from: location) { self[$0] }
  }

  /// Returns the validator for the next fetch; fields that a 304 leaves out stay as they were.
  func validator(_ freshness: HTTPFreshness, renewing known: HTTPValidator? = nil) -> HTTPValidator
  {
    var validator = known ?? HTTPValidator()
    if let tag = self["ETag"] { validator.entityTag = tag }
    if let date = self["Last-Modified"] { validator.lastModified = date }
    if let directives = self["Cache-Control"] { validator.cacheControl = directives }
    if let expires = self["Expires"] { validator.expires = expires }
    if let vary = self["Vary"] { validator.vary = vary }
    validator.location = location
    validator.staleFrom = arrival + (freshness.lifetime ?? 0) - freshness.overdue
    validator.staleIfError = freshness.staleIfError
    validator.forbidsStale = freshness.mustRevalidate
    validator.leavesLifetimeOpen = freshness.lifetime == nil
    return validator
  }

  /// The URLs whose values this answer invalidates (RFC 9111, 4.4).
  ///
  /// After a redirect, that includes the URL that has answered. URLs that the answer names count if they have its
  /// origin: a server cannot invalidate the values of another one.
  var invalidated: Set<URL> {
    guard !request.isSafe, (200..<400).contains(response.status), let url = request.url else {
      return []
    }
    var places = [url, response.url]
    for field in ["Location", "Content-Location"] {
      guard let place = self[field].flatMap({ URL(string: $0, relativeTo: response.url) }),
        place.absoluteURL.origin == response.url.origin
      else { continue }
      places.append(place.absoluteURL)
    }
    // A map of URLs can have them as the request spells them.
    return Set(places.flatMap { [$0.asSent, $0.asCached] })
  }
}

extension HTTPValidator {
  /// The field that the value came with, if it applies until an answer replaces it.
  subscript(field: String) -> String? {
    switch field {
    case "Cache-Control": cacheControl
    case "Expires": expires
    case "Vary": vary
    default: nil
    }
  }
}

extension URLRequest {
  /// Whether its method changes nothing at the server (RFC 9110, 9.2.1).
  var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(httpMethod ?? "GET") }

  /// Whether its method asks for a value that can be cached.
  var asksForValue: Bool { ["GET", "HEAD"].contains(httpMethod ?? "GET") }

  /// Returns a request that is answered with 304 if the value has not changed.
  ///
  /// - Parameter known: The validator of that value.
  /// - Returns: The request; `nil` if its method does not ask for a value, or there is neither a tag nor a date.
  func asking(whether known: HTTPValidator) -> URLRequest? {
    let conditions = known.conditions
    guard asksForValue, !conditions.isEmpty else { return nil }
    var request = self
    for (name, value) in conditions { request.setValue(value, forHTTPHeaderField: name) }
    return request
  }
}

extension URL {
  /// The URL in the one spelling of all that are equal over HTTP (RFC 9110, 4.2.3), without its fragment.
  var asCached: URL {
    let url = asSent
    guard let scheme = url.scheme, let host = url.host(percentEncoded: true) else { return url }
    let plain = scheme.lowercased()
    let hasDefaultPort = url.port == (plain == "https" ? 443 : 80)
    guard
      scheme != plain || host != host.lowercased() || hasDefaultPort || url.path().isEmpty,
      var components = URLComponents(url: url, resolvingAgainstBaseURL: true)
    else { return url }
    components.scheme = plain
    components.percentEncodedHost = components.percentEncodedHost?.lowercased()
    if hasDefaultPort { components.port = nil }
    if components.percentEncodedPath.isEmpty { components.percentEncodedPath = "/" }
    return components.url ?? url
  }
}
