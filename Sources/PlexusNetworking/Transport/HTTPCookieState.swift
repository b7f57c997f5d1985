/// Which cookies there are, and where each is sent (RFC 6265, 5).
struct HTTPCookieState: Sendable {
  /// Where a request goes to.
  struct Place {
    /// The host in lower case.
    let host: String
    let path: String
    let isSecure: Bool
  }

  struct Cookie: Sendable {
    let name: String
    let value: String
    /// The host, or the domain with everything below it.
    let domain: String
    let isOfHostOnly: Bool
    let path: String
    let isSecure: Bool
    /// When it expires, in seconds since 1970-01-01T00:00Z; `nil` at the end of the session.
    let expiry: Double?
  }

  /// The cookies in the order in which they were created.
  private(set) var cookies: [Cookie] = []

  /// The largest number of cookies, and of bytes of one: a server must not fill the memory.
  static let (maximumCount, maximumBytes) = (1_000, 4_096)

  /// Returns the value of the `Cookie` field of a request, and removes the cookies that have expired.
  mutating func header(for place: Place, now: Double) -> String? {
    removeExpired(now: now)
    return value(for: place, now: now)
  }

  /// Returns the value of the `Cookie` field of a request; `nil` if there are none for it.
  func value(for place: Place, now: Double) -> String? {
    let matching = cookies(of: place, now: now).filter { Self.matches(place.path, below: $0.path) }
    guard !matching.isEmpty else { return nil }
    // Those of longer paths come first; the sort is stable.
    return matching.sorted { $0.path.utf8.count > $1.path.utf8.count }
      .map { "\($0.name)=\($0.value)" }
      .joined(separator: "; ")
  }

  /// Returns the cookies of a host for whatever path, as text that only compares; `nil` if there are none.
  func all(for place: Place, now: Double) -> String? {
    let matching = cookies(of: place, now: now)
    guard !matching.isEmpty else { return nil }
    return Self.text(of: matching)
  }

  /// Returns cookies as text that only compares.
  static func text(of cookies: [Cookie]) -> String {
    cookies.map { "\($0.domain) \($0.path) \($0.name)=\($0.value)" }.joined(separator: "; ")
  }

  private func cookies(of place: Place, now: Double) -> [Cookie] {
    cookies.filter { cookie in
      (cookie.isOfHostOnly
        ? cookie.domain == place.host : Self.matches(place.host, domain: cookie.domain))
        && (place.isSecure || !cookie.isSecure) && cookie.expiry.map { $0 > now } ?? true
    }
  }

  /// Removes the cookies that have expired.
  mutating func removeExpired(now: Double) {
    cookies.removeAll { $0.expiry.map { $0 <= now } ?? false }
  }

  /// Takes one `Set-Cookie` field.
  mutating func store(_ field: String, from place: Place, now: Double) {
    // Control characters would end the field that the cookie is sent in.
    guard field.utf8.count <= Self.maximumBytes,
      field.utf8.allSatisfy({ $0 > 31 && $0 != 127 || $0 == UInt8(ascii: "\t") })
    else { return }
    var parts = field.split(separator: ";", omittingEmptySubsequences: false)[...]
    guard let pair = parts.popFirst(), let separator = pair.firstIndex(of: "=") else { return }
    let name = Self.trimmed(pair[..<separator])
    let value = Self.trimmed(pair[pair.index(after: separator)...])
    guard !name.isEmpty else { return }
    var attributes: [String: String] = [:]
    for part in parts {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      attributes[Self.trimmed(halves[0]).lowercased()] =
        halves.count < 2 ? "" : Self.trimmed(halves[1])
    }
    let isSecure = attributes["secure"] != nil
    guard !isSecure || place.isSecure else { return }

    var domain = attributes["domain"]?.lowercased() ?? ""
    if domain.hasPrefix(".") { domain.removeFirst() }
    let isOfHostOnly = domain.isEmpty || domain == place.host && !domain.contains(".")
    if !isOfHostOnly {
      // The name of the root, a dot at the end, does not make a domain of two names.
      guard domain.dropLast().contains("."), Self.matches(place.host, domain: domain) else {
        return
      }
    }
    var path = attributes["path"] ?? ""
    if !path.hasPrefix("/") { path = Self.directory(of: place.path) }
    if name.hasPrefix("__Secure-"), !isSecure { return }
    if name.hasPrefix("__Host-"), !isSecure || attributes["path"] != "/" || !domain.isEmpty {
      return
    }

    let cookie = Cookie(
      name: name,
      value: value,
      domain: isOfHostOnly ? place.host : domain,
      isOfHostOnly: isOfHostOnly,
      path: path,
      isSecure: isSecure,
      expiry: Self.expiry(attributes, now: now)
    )
    let isSame = { (other: Cookie) in
      other.name == cookie.name && other.domain == cookie.domain && other.path == cookie.path
    }
    // A cookie that was set over https is neither replaced nor shadowed over http (RFC 6265bis, 5.7).
    if !place.isSecure, cookies.contains(where: { Self.shadows(cookie, $0) && $0.isSecure }) {
      return
    }
    let isExpired = cookie.expiry.map { $0 <= now } ?? false
    if let index = cookies.firstIndex(where: isSame) {
      if isExpired { cookies.remove(at: index) } else { cookies[index] = cookie }
    } else if !isExpired {
      if cookies.count >= Self.maximumCount { removeOne() }
      cookies.append(cookie)
    }
  }

  /// Whether a cookie can be sent in place of another one of the same name, or before it.
  private static func shadows(_ cookie: Cookie, _ other: Cookie) -> Bool {
    cookie.name == other.name && matches(cookie.path, below: other.path)
      && (matches(cookie.domain, domain: other.domain)
        || matches(other.domain, domain: cookie.domain))
  }

  /// Removes the oldest cookie of the domain that has the most, so that no server pushes out those of another one.
  private mutating func removeOne() {
    var counts: [String: Int] = [:]
    for cookie in cookies { counts[cookie.domain, default: 0] += 1 }
    let largest = counts.values.max()
    if let index = cookies.firstIndex(where: { counts[$0.domain] == largest }) {
      cookies.remove(at: index)
    }
  }

  /// Returns the fields that were joined by commas.
  ///
  /// A comma in a date follows the day of the week, and is followed by no name with a value.
  static func fields(_ text: String) -> [String] {
    var fields: [String] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let isNew = part.prefix { $0 != ";" }.contains("=")
      if !isNew, let last = fields.last, endsWithinDate(last) {
        fields[fields.count - 1] += "," + part
      } else {
        fields.append(String(part))
      }
    }
    return fields
  }

  /// Whether a field ends with the beginning of a date.
  private static func endsWithinDate(_ field: String) -> Bool {
    let attribute = field.split(separator: ";", omittingEmptySubsequences: false).last ?? ""
    let halves = attribute.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    return trimmed(halves[0]).lowercased() == "expires" && !attribute.contains(",")
  }

  private static func expiry(_ attributes: [String: String], now: Double) -> Double? {
    if let text = attributes["max-age"] {
      let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
      if !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) {
        let seconds = digits.count < text.count ? 0 : Int(digits) ?? .max
        return now + Double(min(seconds, 34_560_000))
      }
    }
    return attributes["expires"].flatMap { HTTPDate.cookieSeconds($0) }.map(Double.init)
  }

  private static func matches(_ host: String, domain: String) -> Bool {
    if host == domain { return true }
    // Numbers and colons are addresses, which have nothing below them.
    let isAddress = host.contains(":") || host.utf8.allSatisfy { (46...57).contains($0) }
    return !isAddress && host.hasSuffix("." + domain)
  }

  private static func matches(_ path: String, below folder: String) -> Bool {
    guard path.hasPrefix(folder) else { return false }
    return folder.hasSuffix("/") || path.utf8.count == folder.utf8.count
      || path.utf8.dropFirst(folder.utf8.count).first == UInt8(ascii: "/")
  }

  private static func directory(of path: String) -> String {
    guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      return "/"
    }
    return String(path[..<slash])
  }

  private static func trimmed(_ text: Substring) -> String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    var rest = text.drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return String(rest)
  }
}
