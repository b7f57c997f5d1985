internal import Foundation

/// A server as a URL has it: `redis://user:password@host:port/database`, `rediss://` with TLS, or
/// `unix://user:password@/path?db=database`.
///
/// Errors name the part that is wrong, and no content of the URL.
struct RedisURL: Sendable {
  let address: RedisAddress
  private(set) var user: String?
  private(set) var password: String?
  private(set) var database: Int?

  /// Reads a URL.
  ///
  /// - Throws: ``RedisConnectionError/misconfigured(reason:)``.
  init(_ url: String) throws(RedisConnectionError) {
    guard let (scheme, rest) = Self.cut(url[...], at: "://") else {
      throw Self.error("has no scheme: it begins with redis://, rediss:// or unix://")
    }
    guard !rest.contains("#") else { throw Self.error("has a fragment: escape # as %23") }
    let (location, query) =
      Self.cut(rest, at: "?").map { ($0.0, $0.1 as Substring?) } ?? (rest, nil)
    let end = location.firstIndex(of: "/") ?? location.endIndex
    var authority = location[..<end]
    let path = location[end...]
    var isSignedIn = false
    if let at = authority.lastIndex(of: "@") {
      try Self.signIn(authority[..<at], &user, &password)
      authority = authority[authority.index(after: at)...]
      isSignedIn = true
    }
    switch scheme.lowercased() {
    case "redis": address = try Self.server(authority, isEncrypted: false)
    case "rediss": address = try Self.server(authority, isEncrypted: true)
    case "unix":
      guard authority.isEmpty, path.count > 1 else {
        throw Self.error("has no path of a socket: it begins with unix:///")
      }
      address = .unix(path: try Self.unescape(path, "path"))
    default:
      throw Self.error("has an unknown scheme: it begins with redis://, rediss:// or unix://")
    }
    if scheme.lowercased() != "unix", path.count > 1 {
      database = try Self.database(path.dropFirst())
    }
    if let query, !query.isEmpty {
      guard let (name, value) = Self.cut(query, at: "="), name == "db", database == nil else {
        throw Self.error(
          "has an unknown query: db is the only name, and the path must not have a database"
        )
      }
      database = try Self.database(value)
    }
    // Without a password, a user is one for which the server requires none.
    if isSignedIn, user != nil, password == nil { password = "" }
  }

  private static func error(_ reason: String) -> RedisConnectionError {
    .misconfigured(reason: "The URL of the Redis server \(reason).")
  }

  private static func cut(
    _ text: Substring,
    at separator: String
  ) -> (Substring, Substring)? {
    text.firstRange(of: separator).map { (text[..<$0.lowerBound], text[$0.upperBound...]) }
  }

  private static func signIn(
    _ text: Substring,
    _ user: inout String?,
    _ password: inout String?
  ) throws(RedisConnectionError) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    if !parts[0].isEmpty { user = try unescape(parts[0], "user") }
    if parts.count == 2 { password = try unescape(parts[1], "password") }
  }

  private static func server(
    _ text: Substring,
    isEncrypted: Bool
  ) throws(RedisConnectionError) -> RedisAddress {
    var host = text
    var port: UInt16 = 6379
    // An IPv6 address has brackets.
    let end = text.hasPrefix("[") ? text.firstIndex(of: "]") : text.startIndex
    guard let end else { throw error("has no end of an IPv6 address: ]") }
    if let colon = text[end...].lastIndex(of: ":") {
      host = text[..<colon]
      let digits = text[text.index(after: colon)...]
      guard let number = UInt16(decimal: Array(digits.utf8)[...]), number > 0,
        digits.utf8.first.map({ (0x30...0x39).contains($0) }) == true
      else { throw error("has no valid port: it is a number from 1 to 65535") }
      port = number
    }
    if host.hasPrefix("[") {
      guard host.hasSuffix("]") else { throw error("has something behind an IPv6 address") }
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw error("has more than one port: an IPv6 address is written in brackets")
    }
    let name = try unescape(host, "host")
    guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw error("has no valid host")
    }
    return isEncrypted ? .tls(host: name, port: port, ca: nil) : .tcp(host: name, port: port)
  }

  private static func database(_ text: Substring) throws(RedisConnectionError) -> Int {
    let digits = Array(text.utf8)
    guard let number = Int(decimal: digits[...]), digits.allSatisfy({ (0x30...0x39).contains($0) })
    else { throw error("has no valid database: it is a number from 0") }
    return number
  }

  /// Replaces percent escapes.
  private static func unescape(
    _ text: Substring,
    _ part: String
  ) throws(RedisConnectionError) -> String {
    guard let unescaped = text.removingPercentEncoding, !unescaped.utf8.contains(0) else {
      throw error(
        "has a wrong percent escape in its \(part): escape % as %25, other bytes as UTF-8"
      )
    }
    return unescaped
  }
}
