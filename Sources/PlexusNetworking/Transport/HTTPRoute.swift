internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The way of a request through its redirects (RFC 9110, 15.4).
struct HTTPRoute {
  /// The request to send next.
  private(set) var request: URLRequest
  /// Its URL.
  private(set) var url: URL
  private let rules: HTTPRedirectRules
  /// The names of header fields that another origin must not be sent, in lower case.
  private let credentials: Set<String>
  private var count = 0

  /// Creates the way of a request.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - headers: The header fields that are added to it for the first origin.
  ///   - rules: The rules for redirects.
  /// - Throws: `URLError.badURL` if there is no URL, `URLError.unsupportedURL` if it is none of http or https,
  ///   or its port is greater than 65,535.
  init(_ request: URLRequest, headers: [String: String], rules: HTTPRedirectRules) throws {
    guard let url = request.url else { throw URLError(.badURL) }
    guard url.isHTTP else { throw URLError(.unsupportedURL) }
    self.request = request
    self.url = url
    self.rules = rules
    for (name, value) in headers where request.value(forHTTPHeaderField: name) == nil {
      self.request.setValue(value, forHTTPHeaderField: name)
    }
    credentials = Set((rules.credentials + headers.keys + ["Host"]).map { $0.lowercased() })
  }

  /// Returns where a redirect leads to.
  ///
  /// It is what the answer says: a client may have changed the scheme of what it offers.
  ///
  /// - Parameters:
  ///   - response: The answer.
  ///   - url: The URL that has answered.
  /// - Returns: The URL; `nil` if the answer is no redirect.
  static func target(of response: HTTPURLResponse, from url: URL) -> URL? {
    guard [301, 302, 303, 307, 308].contains(response.statusCode),
      let location = response.value(forHTTPHeaderField: "Location"), !location.isEmpty,
      let target = URL(string: location, relativeTo: url)?.absoluteURL
    else { return nil }
    return target
  }

  /// Follows a redirect.
  ///
  /// - Parameters:
  ///   - target: Where it leads to.
  ///   - status: Its status.
  /// - Throws: `URLError` if the rules forbid it: `httpTooManyRedirects`, `unsupportedURL` for a scheme other
  ///   than http and https, or a port greater than 65,535, `appTransportSecurityRequiresSecureConnection` for one from https to http;
  ///   `requestBodyStreamExhausted` if a body would have to be sent again that cannot be.
  mutating func follow(_ target: URL, status: Int) throws {
    count += 1
    guard count <= rules.limit else { throw URLError(.httpTooManyRedirects) }
    guard target.isHTTP else { throw URLError(.unsupportedURL) }
    if !rules.allowsDowngrade, url.isSecure, !target.isSecure {
      throw URLError(.appTransportSecurityRequiresSecureConnection)
    }
    let method = request.httpMethod ?? "GET"
    let asksAgain = status == 303 || (method == "POST" && (status == 301 || status == 302))
    if asksAgain, method != "GET", method != "HEAD" {
      request.httpMethod = "GET"
      request.httpBody = nil
      request.httpBodyStream = nil
      for name in request.allHTTPHeaderFields?.keys.map({ $0 }) ?? [] {
        let known = name.lowercased()
        if known.hasPrefix("content-") || known == "transfer-encoding" || known == "expect" {
          request.setValue(nil, forHTTPHeaderField: name)
        }
      }
    } else if request.httpBodyStream != nil {
      throw URLError(.requestBodyStreamExhausted)
    }
    if target.origin != url.origin {
      for name in request.allHTTPHeaderFields?.keys.map({ $0 }) ?? []
      where credentials.contains(name.lowercased()) {
        let isHost = name.lowercased() == "host"
        if isHost || !rules.sendsCredentialsToOtherOrigins {
          request.setValue(nil, forHTTPHeaderField: name)
        }
      }
    }
    request.url = target
    url = target
  }
}

extension URL {
  /// Whether it is one of HTTP, with a port that exists.
  var isHTTP: Bool {
    guard let scheme = scheme?.lowercased() else { return false }
    return (scheme == "http" || scheme == "https") && host()?.isEmpty == false && hasUsablePort
  }

  /// Whether the port exists.
  ///
  /// One of too many digits is read as none, and would be that of the scheme.
  private var hasUsablePort: Bool {
    if let port { return (0...65_535).contains(port) }
    return URLComponents(url: self, resolvingAgainstBaseURL: true)?.rangeOfPort?.isEmpty ?? true
  }

  /// Whether it is one of HTTP over TLS.
  var isSecure: Bool { scheme?.lowercased() == "https" }

  /// Scheme, host and port: the unit of trust, and that of a host's limit.
  var origin: String {
    let scheme = scheme?.lowercased() ?? ""
    return "\(scheme)://\(host()?.lowercased() ?? ""):\(port ?? (scheme == "https" ? 443 : 80))"
  }
}
