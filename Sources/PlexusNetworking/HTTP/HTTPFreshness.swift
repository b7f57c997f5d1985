internal import Plexus

/// The caching directives of a response (RFC 9111, RFC 5861), for a cache of one user.
///
/// All times are in seconds and count from the arrival on.
struct HTTPFreshness: Hashable {
  /// The time that the response is fresh; `nil` if it names none.
  var lifetime: Int64?
  /// The age of the response at its arrival.
  private(set) var age: Int64 = 0
  /// The time since which it has been stale.
  private(set) var overdue: Int64 = 0
  /// The time after its lifetime in which it can be used while it is revalidated; `nil` if it names none.
  private(set) var staleWhileRevalidate: Int64?
  /// The time after its lifetime in which it can be used in place of an error; `nil` if it names none.
  private(set) var staleIfError: Int64?
  /// Whether it must not be used without revalidation once it is stale, or at all.
  var mustRevalidate = false
  /// Whether it must not be stored.
  var noStore = false

  /// Reads header fields.
  ///
  /// - Parameters:
  ///   - now: The time of arrival, in seconds since 1970-01-01T00:00Z.
  ///   - delay: The seconds between asking and arrival.
  ///   - status: The status of the response, as far as it is kept under that.
  ///   - field: Returns the value of the field of that name, if there is one.
  init(now: Int64, delay: Int64 = 0, status: Int = 200, _ field: (String) -> String?) {
    let directives = Self.directives(field("Cache-Control") ?? "")
    let asksAlways =
      directives["no-cache"] != nil || Self.commaSeparated(field("Vary") ?? "").contains("*")
    mustRevalidate = asksAlways || directives["must-revalidate"] != nil
    // With must-understand, no-store does not apply to a status whose caching rules are implemented here.
    noStore =
      directives["must-understand"] == nil
      ? directives["no-store"] != nil : !Self.understoodStatuses.contains(status)

    let date = field("Date").flatMap { HTTPDate.seconds($0, now: now) }
    age = max(
      date.map { now - $0 } ?? 0,
      (field("Age").flatMap(Self.firstSeconds) ?? 0) + max(0, delay)
    )
    if noStore || asksAlways {
      lifetime = 0
    } else if let maximumAge = directives["max-age"] {
      // A malformed lifetime makes the value stale.
      count(Self.seconds(maximumAge) ?? 0, less: age)
    } else if let expires = field("Expires") {
      count(HTTPDate.seconds(expires, now: now).map { $0 - (date ?? now) } ?? 0, less: age)
    }
    staleWhileRevalidate = remainder(directives["stale-while-revalidate"])
    staleIfError = remainder(directives["stale-if-error"])
  }

  /// Shortens the lifetime to that of a redirect, which the server may change (RFC 9111, 4).
  ///
  /// A temporary one without a lifetime must be requested again each time.
  mutating func limit(by redirect: HTTPRedirect, now: Int64, delay: Int64 = 0) {
    let other = HTTPFreshness(now: now, delay: delay) { redirect.headers[$0] }
    if other.noStore || other.mustRevalidate { mustRevalidate = true }
    guard let lifetime else {
      // Without a lifetime of the answer itself the policy decides, unless the redirect is stale at once.
      if other.lifetime == 0 { self.lifetime = 0 }
      return
    }
    let limit = other.lifetime ?? (redirect.isPermanent ? lifetime : 0)
    guard limit < lifetime else { return }
    self.lifetime = limit
    staleWhileRevalidate = other.staleWhileRevalidate ?? 0
  }

  private mutating func count(_ total: Int64, less age: Int64) {
    lifetime = max(0, total - age)
    overdue = max(0, age - total)
  }

  private func remainder(_ argument: String?) -> Int64? {
    argument.flatMap(Self.seconds).map { max(0, $0 - overdue) }
  }

  /// The same for a multiplexer.
  var directives: CacheDirectives {
    CacheDirectives(
      timeToLive: lifetime.map { .seconds($0) },
      staleWhileRevalidate: staleWhileRevalidate.map { .seconds($0) },
      staleIfError: staleIfError.map { .seconds($0) },
      requiresRevalidation: mustRevalidate
    )
  }

  /// The statuses whose caching rules are implemented.
  private static let understoodStatuses: Set<Int> = [200, 203, 204, 206]

  // MARK: - Reading

  /// The directives with their arguments, which are empty where there are none; the first of a name counts.
  static func directives(_ text: String) -> [String: String] {
    var directives: [String: String] = [:]
    for part in commaSeparated(text) {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = halves[0].filter { $0 != " " && $0 != "\t" }.lowercased()
      guard !name.isEmpty, directives[name] == nil else { continue }
      directives[name] = halves.count < 2 ? "" : halves[1].filter { !"\" \t".contains($0) }
    }
    return directives
  }

  /// The seconds of a number without sign; a number that is too large counts as about 68 years.
  static func seconds(_ text: String) -> Int64? {
    let digits = text.filter { $0 != " " && $0 != "\t" }
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return min(Int64(digits) ?? .max, 2_147_483_648)
  }

  /// The seconds of the first of several numbers.
  static func firstSeconds(_ text: String) -> Int64? {
    text.split(separator: ",").first.flatMap { seconds(String($0)) }
  }

  /// Returns the time to wait that a Retry-After field names.
  ///
  /// - Parameters:
  ///   - text: Seconds, or a date.
  ///   - now: The time, in seconds since 1970-01-01T00:00Z.
  /// - Returns: The seconds; `nil` if it is neither.
  static func retryAfter(_ text: String, now: Int64) -> Int64? {
    seconds(text) ?? HTTPDate.seconds(text, now: now).map { max(0, $0 - now) }
  }

  /// The parts between commas outside quotation marks, without spaces around them.
  static func commaSeparated(_ text: String) -> [String] {
    var parts: [String.UnicodeScalarView] = [.init()]
    var isQuoted = false
    var isEscaped = false
    // By scalars: a mark that combines with a comma does not make it another character here.
    for scalar in text.unicodeScalars {
      if scalar == "\"", !isEscaped { isQuoted.toggle() }
      isEscaped = isQuoted && scalar == "\\" && !isEscaped
      if scalar == ",", !isQuoted {
        parts.append(.init())
      } else {
        parts[parts.count - 1].append(scalar)
      }
    }
    // A quotation mark without another one quotes nothing: a directive after it must not be overlooked.
    if isQuoted { parts = text.unicodeScalars.split(separator: ",").map { .init($0) } }
    return parts.map { part in
      let isBlank = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
      var rest = part.drop(while: isBlank)
      while let last = rest.last, isBlank(last) { rest.removeLast() }
      return String(rest)
    }
  }
}
