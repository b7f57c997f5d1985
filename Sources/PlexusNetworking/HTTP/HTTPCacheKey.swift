internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A request whose answer is stored, with the credentials that it is sent with.
struct HTTPCacheKey: Hashable, Sendable, CustomStringConvertible {
  let url: URL
  /// The header fields by their names in lower case, in the one spelling of all that mean the same.
  private(set) var fields: [String: String]
  let request: URLRequest
  let credentials: HTTPCredentials

  /// Creates the key of a request.
  init(_ request: URLRequest, credentials: HTTPCredentials) {
    let url = request.url?.asCached ?? URL(filePath: "/")
    self.url = url
    self.request = request
    self.credentials = credentials
    var fields: [String: String] = [:]
    for (name, value) in request.allHTTPHeaderFields ?? [:] { fields[name.lowercased()] = value }
    for (name, value) in credentials.headers where fields[name.lowercased()] == nil {
      fields[name.lowercased()] = value
    }
    if fields["cookie"] == nil { fields["cookie"] = credentials.cookies(for: url) }
    for (name, value) in fields {
      fields[name] =
        credentials.names.contains(name)
        ? value.trimmingCharacters(in: .whitespaces) : HTTPSelection.normalized(value, of: name)
    }
    // The method selects as a field does, under a name that no field has.
    fields[":method"] = request.httpMethod ?? "GET"
    self.fields = fields
    // It neither uses what is stored nor replaces it.
    if directives["no-store"] != nil { self.fields[":no-store"] = "" }
  }

  /// The name of the value in events and errors, which are logged.
  var description: String { "\(fields[":method"] ?? "GET") \(url.withoutSecrets ?? "")" }

  static func == (one: HTTPCacheKey, other: HTTPCacheKey) -> Bool {
    one.url == other.url && one.fields == other.fields
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(url)
    hasher.combine(fields)
  }

  /// Returns the key with the cookies for some origins, which select as fields do.
  func selecting(_ origins: Set<String>) -> HTTPCacheKey {
    var result = self
    for origin in origins {
      let name = Self.field(ofOrigin: origin)
      if result.fields[name] == nil {
        result.fields[name] = credentials.cookies(ofOrigin: origin) ?? ""
      }
    }
    return result
  }

  /// Whether the account of the token for an origin is a part of the key.
  func hasAccount(for origin: String) -> Bool { fields[Self.field(ofAccountAt: origin)] != nil }

  /// Whether the request has been sent for accounts that are not a part of the key.
  var lacksAccounts: Bool { credentials.accounts.keys.contains { !hasAccount(for: $0) } }

  /// Returns the key with the account of the token for an origin.
  func with(_ account: String, for origin: String) -> HTTPCacheKey {
    var result = self
    result.fields[Self.field(ofAccountAt: origin)] = account
    return result
  }

  /// Returns the key with the accounts of all tokens that the request has been sent with.
  var withAccounts: HTTPCacheKey {
    var result = self
    for (origin, account) in credentials.accounts { result = result.with(account, for: origin) }
    return result
  }

  /// Returns the fields of the entry's own request, with the cookies of the origins that it has not had.
  func fields(completedBy sent: HTTPCacheKey) -> [String: String] {
    sent.fields.filter { $0.key.hasPrefix(Self.prefix) }.merging(fields) { $1 }
  }

  /// Returns the names of the fields that select a stored answer.
  ///
  /// - Parameters:
  ///   - vary: The names that the server has given.
  ///   - origins: The origins that redirects have led to.
  /// - Returns: The names in lower case.
  func selectingNames(_ vary: String?, origins: Set<String> = []) -> Set<String> {
    let names = vary.map(HTTPFreshness.commaSeparated) ?? []
    return Set(names.map { $0.lowercased() }).union(Self.selectingAlways)
      .union(credentials.names).union(origins.map(Self.field(ofOrigin:)))
      .union(credentials.accounts.keys.map(Self.field(ofAccountAt:)))
  }

  private static let prefix = ":cookies "

  private static func field(ofOrigin origin: String) -> String { prefix + origin }

  private static func field(ofAccountAt origin: String) -> String { ":account " + origin }

  /// An answer to a request with one of these is that of one account, of a part or of a condition.
  private static let selectingAlways: Set<String> = [
    ":method", ":no-store", "authorization", "cookie", "range", "if-range", "if-match",
    "if-none-match", "if-modified-since", "if-unmodified-since",
  ]

  // MARK: - Directives of the request

  private var directives: [String: String] {
    fields["cache-control"].map(HTTPFreshness.directives)
      ?? (fields["pragma"].map(HTTPFreshness.directives)?["no-cache"] == nil
        ? [:] : ["no-cache": ""])
  }

  /// Whether the request does not want a stored value, however new.
  var asksForNewValue: Bool {
    let directives = directives
    return directives["no-cache"] != nil
      || directives["max-age"].map { HTTPFreshness.seconds($0) ?? 0 } == 0
  }

  /// Whether the request limits the age of a stored value.
  var limitsAge: Bool { directives["max-age"] != nil || directives["min-fresh"] != nil }

  /// Whether a stored value can answer the request.
  ///
  /// - Parameters:
  ///   - age: Its age in seconds.
  ///   - lifetime: The age up to which it is fresh; `nil` if its server does not say.
  /// - Returns: Whether it does.
  func accepts(age: Int64, lifetime: Int64?) -> Bool {
    let directives = directives
    if let limit = directives["max-age"].map({ HTTPFreshness.seconds($0) ?? 0 }), age > limit {
      return false
    }
    guard let rest = directives["min-fresh"].map({ HTTPFreshness.seconds($0) ?? .max }) else {
      return true
    }
    return lifetime.map { $0 - age >= rest } ?? false
  }
}

extension HTTPCacheState where URL == Foundation.URL, Key == HTTPCacheKey {
  /// Takes an answer.
  ///
  /// - Parameters:
  ///   - terms: What it says about itself.
  ///   - vary: The names of the fields that select it.
  ///   - fetch: The fetch, with the request and its credentials.
  ///   - key: The entry of the answer.
  /// - Returns: Whether the answer can be stored in the entry.
  mutating func answer(
    _ terms: Terms,
    _ vary: String?,
    to fetch: Fetch,
    of key: HTTPCacheKey
  ) -> Bool {
    let origins = origins(key.url, with: terms.origins)
    let sent = fetch.asked.selecting(origins).withAccounts
    return answer(
      sent.selectingNames(vary, origins: origins),
      key.url,
      fields: sent.fields,
      own: key.fields(completedBy: sent),
      key: key,
      terms: terms,
      fetch: fetch
    )
  }
}

extension HTTPFetcher.Answer {
  /// The facts that a cache needs.
  var terms: HTTPCacheState<URL, HTTPCacheKey>.Terms {
    HTTPCacheState.Terms(
      date: exchange.date,
      isStored: isKept && exchange.response.status != 206 && !exchange.trail.hasChangedCookies,
      isPassing: isPassing,
      origins: exchange.trail.origins,
      age: freshness.age,
      lifetime: freshness.lifetime.map { $0 + freshness.age }
    )
  }
}
