/// What the header fields of a response say about keeping it (RFC 9111, RFC 5861), for a cache of one user.
struct HTTPFreshness: Hashable {
  /// How long it is fresh, in seconds from the arrival on; `nil` if it does not say.
  var lifetime: Int?
  /// How long after that it may stand in for an answer that is an error, in seconds; `nil` if it does not say.
  var staleIfError: Int?
  /// Whether it must not be used without asking once it is stale, or at all.
  var mustRevalidate = false
  /// Whether it must not be kept.
  var noStore = false

  /// Reads header fields.
  ///
  /// - Parameters:
  ///   - now: The time of arrival, in seconds since 1970-01-01T00:00Z.
  ///   - delay: The seconds between asking and arrival.
  ///   - field: Returns the value of the field of that name, if there is one.
  init(now: Int, delay: Int = 0, _ field: (String) -> String?) {
    let directives = Self.directives(field("Cache-Control") ?? "")
    let age = max(0, field("Age").flatMap(Self.seconds) ?? 0) + max(0, delay)
    staleIfError = directives["stale-if-error"].flatMap(Self.seconds)
    mustRevalidate = directives["must-revalidate"] != nil || directives["no-cache"] != nil
    noStore = directives["no-store"] != nil
    if noStore || directives["no-cache"] != nil {
      lifetime = 0
    } else if let maximumAge = directives["max-age"] {
      // What cannot be read is stale.
      lifetime = max(0, (Self.seconds(maximumAge) ?? 0) - age)
    } else if let expires = field("Expires") {
      let date = field("Date").flatMap(HTTPDate.seconds) ?? now
      lifetime = HTTPDate.seconds(expires).map { max(0, $0 - date - age) } ?? 0
    }
  }

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

  /// The seconds of a number without sign; those that are too large count as about 68 years.
  static func seconds(_ text: String) -> Int? {
    let digits = text.filter { $0 != " " && $0 != "\t" }
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return min(Int(digits) ?? .max, 2_147_483_648)
  }

  /// Returns how long to wait, as a Retry-After field says it.
  ///
  /// - Parameters:
  ///   - text: Seconds, or a date.
  ///   - now: The time, in seconds since 1970-01-01T00:00Z.
  /// - Returns: The seconds; `nil` if it is neither.
  static func retryAfter(_ text: String, now: Int) -> Int? {
    seconds(text) ?? HTTPDate.seconds(text).map { max(0, $0 - now) }
  }

  /// The parts between commas that do not stand in quotation marks.
  private static func commaSeparated(_ text: String) -> [String] {
    var parts = [""]
    var isQuoted = false
    for character in text {
      if character == "\"" { isQuoted.toggle() }
      if character == ",", !isQuoted {
        parts.append("")
      } else {
        parts[parts.count - 1].append(character)
      }
    }
    return parts
  }
}
