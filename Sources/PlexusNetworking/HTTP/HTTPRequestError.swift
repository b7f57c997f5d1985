public import Foundation
public import Plexus

/// A request that cannot be sent or answered as it stands, regardless of the server.
@nonexhaustive
public enum HTTPRequestError: Error, Hashable, Sendable {
  /// The method is not one that asks for a value, `GET` or `HEAD`.
  case methodNotCached(String)

  /// A `file` URL is requested with a method other than `GET` and `HEAD`.
  case methodOfFile(String, URL)

  /// The jar was emptied before the request, or its next attempt or redirect, was sent with cookies of it.
  case cookiesRemoved

  /// The token of a ``TokenTransport`` is that of another account than the request was made, or sent before, for.
  case accountChanged

  /// The token was removed while the request waited for it, or its fetch does not keep it.
  case signedOut

  /// The closure that adds a token has changed the origin of a request, which was therefore not sent.
  case authorizedForOtherOrigin(URL?)
}

extension HTTPRequestError: OriginFailure {
  /// `false`: no server has failed.
  public var isOriginFailure: Bool { false }
}

extension HTTPRequestError: CustomStringConvertible {
  /// A sentence that says what happened and what to do about it.
  public var description: String {
    switch self {
    case .methodNotCached(let method):
      "The answer to \(method) is not cached; send it with request(_:), or ask with GET or HEAD."
    case .methodOfFile(let method, let url):
      "\(method) cannot be sent to \(url.withoutSecrets ?? "a file URL"); read a file URL with GET."
    case .cookiesRemoved:
      "The cookies of the request were removed before it was sent; request it again."
    case .accountChanged:
      "Another account has signed in before the request was sent; request it again."
    case .signedOut:
      """
      The token was removed before the request was sent; sign in and request it again. If nothing removes it, its fetch \
      returns .transient: let it return .value.
      """
    case .authorizedForOtherOrigin(let url):
      """
      The request was not sent to \(url?.withoutSecrets ?? "no URL"): authorize can change everything in a request but \
      its scheme, host and port.
      """
    }
  }
}
