internal import Foundation

/// The way that a request has taken to its answer.
struct HTTPTrail: Sendable {
  /// The URL that has answered.
  var url: URL
  /// The redirects that have led there, in order.
  var redirects: [HTTPRedirect] = []
  /// The origins that they have led to, if there are cookies or accounts for them.
  var origins: Set<String> = []
  /// Whether an answer on the way has changed the cookies of a later request.
  var hasChangedCookies = false
}

/// A redirect that was followed.
struct HTTPRedirect: Sendable {
  let status: Int
  let headers: HTTPHeaders

  /// Whether it holds until it says otherwise (RFC 9110, 15.4).
  var isPermanent: Bool { status == 301 || status == 308 }
}
