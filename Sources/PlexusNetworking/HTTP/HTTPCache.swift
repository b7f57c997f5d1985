public import Foundation
public import Plexus
internal import PlexusSupport

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A cache of one user for what is at URLs, as HTTP describes it (RFC 9111).
///
/// It is a map of values by request, each of which is fetched by an ``HTTPFetcher``: once for all callers, fresh
/// as long as its server says, and revalidated afterwards.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// let articles = HTTPCache<String>(capacity: .count(500)) { response in
///   String(decoding: response.body, as: UTF8.self)
/// }
///
/// func title(at url: URL) async throws -> String {
///   try await articles.request(url)
/// }
/// ```
///
/// ## Which value answers a request
///
/// A value answers a request with the same URL and method, and with the same value in every header field that
/// the `Vary` field of the answer has named. `Authorization`, `Cookie`, `Range` and conditions count as named: the
/// value of one account never answers for another, nor a part for the whole. The cookies of a jar count as those of
/// the request. A fragment does not count, nor does the spelling of scheme, host and default port.
///
/// A stale value is renewed with the header fields of the current request.
///
/// Only `GET` and `HEAD` are cached. `Cache-Control: no-cache` in a request fetches, and the newer value replaces
/// those of the URL; with `no-store` nothing is kept.
///
/// ## Requests that change something
///
/// A request with any other method is always sent. After an answer without error, the values of its URL are
/// forgotten, and those of the URLs of the same origin that `Location` and `Content-Location` name, before the
/// call returns. A fetch of them that is in flight is not stored.
///
/// ## Cancellation
///
/// A cancelled caller leaves at once with a `CancellationError`; the policy decides what happens to the fetch
/// that it has left.
///
/// ## Topics
///
/// ### Creating a cache
/// - ``init(id:policy:capacity:transport:rules:clock:now:)``
/// - ``init(id:policy:capacity:transport:rules:clock:now:update:decode:)``
///
/// ### Requesting
/// - ``request(_:)-(URL)``
/// - ``request(_:)-(URLRequest)``
/// - ``response(_:)``
/// - ``cachedValue(_:)``
///
/// ### Clearing
/// - ``clear(_:)``
/// - ``clear()``
/// - ``register(in:)``
///
/// ### Observing
/// - ``events(bufferingPolicy:)``
/// - ``statistics``
public final actor HTTPCache<Value: Sendable> {
  /// Returns a value that was stored for some time as it is returned.
  typealias Reuse = @Sendable (Value, Duration) -> Value

  private nonisolated let values: MultiplexerMap<HTTPCacheKey, Value>
  private nonisolated let index: Locked<HTTPCacheState<URL, HTTPCacheKey>>
  private nonisolated let cookies: HTTPCookieJar?
  private nonisolated let reuse: Reuse?
  private nonisolated let fetcher:
    @Sendable (URLRequest, HTTPFetcher<Value>.Invalidation?) ->
      HTTPFetcher<Value>

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept that say nothing about it, and what happens when fetching is slow or
  ///     fails.
  ///   - capacity: How much is kept in memory.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - clock: The clock that measures the age of values, and the time of the rules.
  ///   - now: A closure that returns the time of day, to compare with dates of the server.
  ///   - update: A closure that returns a value with the header fields of a 304, which confirms it; without one
  ///     the value stays as it is.
  ///   - decode: A closure that makes the value of a 2xx answer. It runs outside of every actor. It is released
  ///     with the cache.
  public init(
    id: String? = nil,
    policy: CachePolicy = .http,
    capacity: CacheCapacity<Value> = .count(1_000),
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    update: (@Sendable (Value, HTTPResponse) -> Value)? = nil,
    decode: @escaping @concurrent @Sendable (HTTPResponse) async throws -> Value
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      client: HTTPClient(transport: transport, rules: rules, clock: clock),
      clock: clock,
      now: now,
      update: update,
      reuse: nil,
      decode: decode
    )
  }

  init(
    id: String?,
    policy: CachePolicy,
    capacity: CacheCapacity<Value>,
    client: HTTPClient,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Date,
    update: (@Sendable (Value, HTTPResponse) -> Value)?,
    reuse: Reuse?,
    decode: @escaping @concurrent @Sendable (HTTPResponse) async throws -> Value
  ) {
    let index = Locked(HTTPCacheState<URL, HTTPCacheKey>())
    let fetcher: @Sendable (URLRequest, HTTPFetcher<Value>.Invalidation?) -> HTTPFetcher<Value> = {
      HTTPFetcher(
        $0,
        client: client,
        now: now,
        invalidate: $1,
        update: update,
        decode: decode
      )
    }
    self.index = index
    self.fetcher = fetcher
    self.reuse = reuse
    cookies = client.rules.cookies
    values = MultiplexerMap(
      id: id ?? "HTTPCache<\(Value.self)>",
      policy: policy,
      capacity: capacity,
      clock: clock
    ) { (key: HTTPCacheKey, context: FetchContext<Value>) in
      let fetch = index.withLock { $0.begin(key.url, key) }
      defer { index.withLock { $0.end(fetch, of: key.url, key) } }
      let isForEntry = Locked(true)
      let result = try await fetcher(fetch.asked.request, nil).fetch(context) { vary in
        let names = key.selectingNames(vary)
        let isStored = index.withLock {
          $0.answer(names, key.url, fields: fetch.asked.fields, own: key.fields, key: key)
        }
        isForEntry.withLock { $0 = isStored }
      }
      // The request had other values in fields that select from now on.
      return isForEntry.withLock { $0 } ? result : result.unstored(context)
    }
  }

  /// Returns the value at a URL.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The value.
  /// - Throws: What ``request(_:)-(URLRequest)`` throws.
  public nonisolated func request(_ url: URL) async throws -> Value {
    try await request(URLRequest(url: url))
  }

  /// Returns the value of a request, or sends a request that changes something.
  ///
  /// - Parameter request: The request.
  /// - Returns: The value.
  /// - Throws: The errors of ``HTTPFetcher/fetch(_:)``; a `CancellationError` if the calling task is cancelled.
  public nonisolated func request(_ request: URLRequest) async throws -> Value {
    guard request.asksForValue else { return try await send(request) }
    return try await response(request).value
  }

  /// Returns the value of a request with where it comes from.
  ///
  /// - Parameter request: The request; `GET` or `HEAD`.
  /// - Returns: The value with its age, its source, and the error that it replaces, if any.
  /// - Throws: What ``request(_:)-(URLRequest)`` throws; `URLError.unsupportedURL` for another method.
  public nonisolated func response(_ request: URLRequest) async throws -> Response<Value> {
    guard request.asksForValue else { throw URLError(.unsupportedURL) }
    let own = HTTPCacheKey(request, cookies: cookies)
    guard own.asksForNewValue else {
      return reused(try await response(own) { [values] in try await values.response($0) }.response)
    }
    let (key, response) = try await response(own) { [values] in
      try await values.refresh($0).response($0)
    }
    // Of several answers that are suitable the newest counts.
    let older = index.withLock { $0.remove(key.url, except: key) }
    try await values.clear(older)
    return response
  }

  /// Returns a response whose value says how old it is, if it can.
  private nonisolated func reused(_ response: Response<Value>) -> Response<Value> {
    guard let reuse, response.source != .fetch else { return response }
    return Response(
      value: reuse(response.value, response.age),
      source: response.source,
      age: response.age,
      isStale: response.isStale,
      isRevalidated: response.isRevalidated,
      error: response.error
    )
  }

  /// Returns the response of the entry that answers a request.
  private nonisolated func response(
    _ own: HTTPCacheKey,
    _ request: (HTTPCacheKey) async throws -> Response<Value>
  ) async throws -> (key: HTTPCacheKey, response: Response<Value>) {
    for _ in 0..<3 {
      let (key, strays) = entry(of: own)
      let response = try await request(key)
      // It may have waited for an answer that turns out to be for requests with other header fields.
      if entry(of: own) == (key, strays) { return (key, response) }
    }
    // The server names other fields each time: its answers are for one request each.
    return (own, try await values.refresh(own).response(own))
  }

  /// Returns the value of a request if it is in memory, fresh or not; nothing is sent.
  ///
  /// - Parameter request: The request.
  /// - Returns: The value; `nil` if there is none in memory.
  public nonisolated func cachedValue(_ request: URLRequest) -> Value? {
    values.cachedValue(key(HTTPCacheKey(request, cookies: cookies)))
  }

  /// Forgets the values of a URL, for whatever header fields.
  ///
  /// They are forgotten before this call suspends. A fetch in flight is not stored.
  ///
  /// - Parameter url: The URL.
  /// - Throws: What a map throws that cannot clear; without a cacher it does not fail.
  public nonisolated func clear(_ url: URL) async throws {
    let keys = index.withLock { $0.remove(url.asCached) }
    try await values.clear(keys)
  }

  /// Forgets all values.
  ///
  /// - Throws: What a map throws that cannot clear; without a cacher it does not fail.
  public nonisolated func clear() async throws {
    index.withLock { $0.removeAll() }
    try await values.clear()
  }

  /// Registers a subscriber to what happens from now on, to all values.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the cache
  ///   is released.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    values.events(bufferingPolicy: bufferingPolicy)
  }

  /// Counts of what has happened so far, over all values.
  public nonisolated var statistics: CacheStatistics { values.statistics }

  /// Adds the cache to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository that clears its members together.
  /// - Returns: The cache itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    values.register(in: repository)
    return self
  }

  /// Returns the entry that answers a request.
  private nonisolated func key(_ own: HTTPCacheKey) -> HTTPCacheKey {
    entry(of: own).key
  }

  /// Returns the entry that answers a request, with the number of its answers that were for other requests.
  private nonisolated func entry(of own: HTTPCacheKey) -> (key: HTTPCacheKey, strays: Int) {
    let (key, strays, isFull) = index.withLock { index in
      let key = index.key(own.url, fields: own.fields, new: own)
      return (key, index.strayCount(key.url, key), index.isFull)
    }
    if isFull {
      let keys = Set(values.keys)
      index.withLock { $0.prune(keeping: keys) }
    }
    return (key, strays)
  }

  /// Sends a request that changes something.
  private nonisolated func send(_ request: URLRequest) async throws -> Value {
    let fetcher = fetcher(request) { [index, values] urls in
      let keys = index.withLock { index in urls.flatMap { index.remove($0) } }
      try await values.clear(keys)
    }
    switch try await fetcher.fetch(FetchContext(previousValue: nil)) {
    case .value(let value, _, _), .confirmed(let value, _, _), .transient(let value): return value
    case .notModified: throw URLError(.badServerResponse)
    }
  }
}

extension HTTPCache where Value == HTTPResponse {
  /// Creates a cache of answers, whose header fields a 304 updates.
  ///
  /// An answer that is reused without asking its server has its present age in the `Age` field.
  ///
  /// - Parameters:
  ///   - id: The name by which it appears in errors; its type if there is none.
  ///   - policy: How long values are kept that say nothing about it, and what happens when fetching is slow or
  ///     fails.
  ///   - capacity: How much is kept in memory.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - clock: The clock that measures the age of values, and the time of the rules.
  ///   - now: A closure that returns the time of day, to compare with dates of the server.
  public init(
    id: String? = nil,
    policy: CachePolicy = .http,
    capacity: CacheCapacity<HTTPResponse> = .count(1_000),
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.init(
      id: id,
      policy: policy,
      capacity: capacity,
      client: HTTPClient(transport: transport, rules: rules, clock: clock),
      clock: clock,
      now: now,
      update: { $0.updated(by: $1) },
      reuse: { $0.reused(after: $1, now: now()) },
      decode: { $0 }
    )
  }
}

/// A request whose answer is stored.
struct HTTPCacheKey: Hashable, Sendable, CustomStringConvertible {
  let url: URL
  /// The header fields by their names in lower case.
  let fields: [String: String]
  let request: URLRequest

  /// Creates the key of a request, which is sent with the cookies of a jar.
  init(_ request: URLRequest, cookies: HTTPCookieJar?) {
    let url = request.url?.asCached ?? URL(filePath: "/")
    self.url = url
    self.request = request
    var fields: [String: String] = [:]
    for (name, value) in request.allHTTPHeaderFields ?? [:] {
      fields[name.lowercased()] = value.trimmingCharacters(in: .whitespaces)
    }
    if fields["cookie"] == nil { fields["cookie"] = cookies?.header(for: url) }
    // The method selects as a field does, under a name that no field has.
    fields[":method"] = request.httpMethod ?? "GET"
    self.fields = fields
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

  /// Whether the request does not want a stored value.
  var asksForNewValue: Bool {
    fields["cache-control"].map(HTTPFreshness.directives)?["no-cache"] != nil
  }

  /// The names of the fields that select a stored answer.
  func selectingNames(_ vary: String?) -> Set<String> {
    let names = vary.map(HTTPFreshness.commaSeparated) ?? []
    return Set(names.map { $0.lowercased() }).union(Self.selectingAlways)
  }

  /// An answer to a request with one of these is that of one account, of a part or of a condition.
  private static let selectingAlways: Set<String> = [
    ":method", "authorization", "cookie", "cache-control", "pragma", "range", "if-range",
    "if-match", "if-none-match",
    "if-modified-since", "if-unmodified-since",
  ]
}

extension FetchResult {
  /// The same value, for the callers that wait for it alone.
  fileprivate func unstored(_ context: FetchContext<Value>) -> FetchResult {
    switch self {
    case .value(let value, _, _), .confirmed(let value, _, _): .transient(value)
    case .notModified: context.previousValue.map { .transient($0) } ?? self
    case .transient: self
    }
  }
}
