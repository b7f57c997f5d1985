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
/// the `Vary` field of the answer has named. `Range` and conditions count as named, and so do credentials:
/// `Authorization`, `Cookie`, the header fields of the transport, and the fields that ``HTTPRedirectRules/credentials``
/// names. A fragment does not count, nor does the spelling of scheme, host and default port, space between the parts of
/// a field, the case of languages and codings, or the order of languages: their weights are their order.
///
/// Of several values that answer a request the most recent one counts, by the `Date` of its server and not by its
/// arrival. A stale value is renewed with the header fields of the current request.
///
/// Only `GET` and `HEAD` are cached, and never a part (206). `Cache-Control: no-cache` or `max-age=0` in a request asks
/// the server in any case, and the newer value replaces the older ones of the URL; `max-age` and `min-fresh` ask it if
/// the value does not suffice. With `no-store` nothing is kept.
///
/// An error status whose server says how long it is fresh is remembered for that long, as with
/// `CachePolicy.failureTimeToLive`.
///
/// ## Accounts
///
/// The value of one account never answers for another. A request reads the cookies of the jar and the header fields of
/// the transport once, when it is made; all its attempts and redirects, and a renewal that it begins, are sent with
/// those. If another account signs in meanwhile, the callers get the answer for the account of their request,
/// and its value is kept for that account. If the jar was emptied, its cookies are no longer sent: the callers get
/// ``HTTPRequestError/cookiesRemoved``. After redirects, the cookies for all origins on the way count. An answer to
/// cookies that were set on its way is for its callers alone.
///
/// With a ``TokenTransport``, a value is kept for the account of the token that was sent. A request of an account whose
/// token has been replaced by that of another account fails with ``HTTPRequestError/accountChanged``.
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
  private nonisolated let client: HTTPClient
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
    self.client = client
    values = MultiplexerMap(
      id: id ?? "HTTPCache<\(Value.self)>",
      policy: policy,
      capacity: capacity,
      clock: clock
    ) { (key: HTTPCacheKey, context: FetchContext<Value>) in
      let fetch = index.withLock { $0.begin(key.url, key) }
      defer { index.withLock { $0.end(fetch, of: key.url, key) } }
      let asked = fetch.asked
      return try await fetcher(asked.request, nil).fetch(context, with: asked.credentials) {
        answer in
        index.withLock { $0.answer(answer.terms, answer.vary, to: fetch, of: key) }
      }
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
  /// - Throws: The errors of ``HTTPFetcher/fetch(_:)``; ``HTTPRequestError`` for a request that cannot be sent; a
  ///   `CancellationError` if the calling task is cancelled.
  public nonisolated func request(_ request: URLRequest) async throws -> Value {
    guard request.asksForValue else { return try await send(request) }
    return try await response(request).value
  }

  /// Returns the value of a request with where it comes from.
  ///
  /// - Parameter request: The request; `GET` or `HEAD`.
  /// - Returns: The value with its age, its source, and the error that it replaces, if any.
  /// - Throws: What ``request(_:)-(URLRequest)`` throws; ``HTTPRequestError/methodNotCached(_:)`` for another method.
  public nonisolated func response(_ request: URLRequest) async throws -> Response<Value> {
    guard request.asksForValue else {
      throw HTTPRequestError.methodNotCached(request.httpMethod ?? "")
    }
    guard request.url != nil else { throw URLError(.badURL) }
    let own = HTTPCacheKey(request, credentials: client.credentials())
    if !own.asksForNewValue {
      let (key, response) = try await response(own) { [values] in try await values.response($0) }
      guard own.limitsAge, response.source != .fetch else { return reused(response) }
      let terms = index.withLock { $0.terms(key.url, key) }
      let age = response.age.components.seconds + terms.age
      if own.accepts(age: age, lifetime: terms.lifetime) { return reused(response) }
    }
    let (key, response) = try await response(own) { [values] in
      try await values.refresh($0).response($0)
    }
    // Of several answers that are suitable the newest counts.
    let older = index.withLock { $0.removeOlder(key.url, than: key) }
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
    var own = own
    for _ in 0..<3 {
      own = try await withAccounts(own)
      let entry = entry(of: own, isFetched: true)
      do {
        let response = try await request(entry.key)
        // It may have waited for an answer that turns out to be for requests with other header fields.
        if isAnswered(own, by: entry) { return (entry.key, response) }
      } catch let error as HTTPStatusError {
        if isAnswered(own, by: entry, isError: true) { throw error }
      }
    }
    // The server names other fields each time: its answers are for one request each.
    let key = entry(of: own).own
    index.withLock { $0.expect(key, at: key.url, asked: key) }
    return (key, try await values.refresh(key).response(key))
  }

  /// Whether the answer of an entry is for a request.
  ///
  /// - Parameters:
  ///   - own: The request.
  ///   - entry: The entry as it was before the answer.
  ///   - isError: Whether the answer is an error, and not the confirmation of a value.
  /// - Returns: Whether it is.
  private nonisolated func isAnswered(
    _ own: HTTPCacheKey,
    by entry: Entry,
    isError: Bool = false
  ) -> Bool {
    let (answered, strays) = index.withLock { index in
      let key = entry.key
      return (index.answered(key.url, key), index.strayCount(key.url, key))
    }
    // An answer to this very request is for it, also if a more recent one is stored.
    let isOwn = answered?.credentials === own.credentials
    if isOwn, isError || strays == entry.strays || own.lacksAccounts { return true }
    return strays == entry.strays && self.entry(of: own).key == entry.key
  }

  /// Returns the value of a request if it is in memory, fresh or not; nothing is sent.
  ///
  /// - Parameter request: The request.
  /// - Returns: The value; `nil` if there is none in memory.
  public nonisolated func cachedValue(_ request: URLRequest) -> Value? {
    var own = HTTPCacheKey(request, credentials: client.credentials())
    if let accounts = client.accounts {
      for (origin, url) in accountable(own) {
        if let account = accounts.present(for: url) { own = own.with(account, for: origin) }
      }
    }
    return values.cachedValue(entry(of: own).key)
  }

  /// Returns a key with the accounts of the tokens that its request will be sent with, as far as that is known.
  ///
  /// - Throws: The error of the fetch of a token; ``HTTPRequestError/accountChanged``.
  private nonisolated func withAccounts(_ own: HTTPCacheKey) async throws -> HTTPCacheKey {
    guard let accounts = client.accounts else { return own }
    var own = own
    for (origin, url) in accountable(own) {
      // Whether the request is redirected there this time is not known: no token is fetched for that.
      let isOwn = origin == own.url.origin
      let account = isOwn ? try await accounts.account(for: url) : accounts.present(for: url)
      guard let account else { continue }
      try own.credentials.bind(account, for: origin)
      own = own.with(account, for: origin)
    }
    return own
  }

  /// Returns the origins of a request and its known redirects whose accounts are not a part of its key, with a URL each.
  private nonisolated func accountable(_ own: HTTPCacheKey) -> [(origin: String, url: URL)] {
    var places = [(origin: own.url.origin, url: own.url)]
    for origin in index.withLock({ $0.origins(own.url) }) {
      if let url = URL(string: origin), url.isHTTP { places.append((origin, url)) }
    }
    return places.filter { !own.hasAccount(for: $0.origin) }
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

  /// The cache as a member of a repository.
  nonisolated var member: any RepositoryMember { values.member }

  /// The entry that answers a request.
  private struct Entry {
    /// The request with all the fields that select.
    let own: HTTPCacheKey
    let key: HTTPCacheKey
    /// The number of its answers that were for other requests.
    let strays: Int
  }

  /// Returns the entry that answers a request.
  ///
  /// - Parameters:
  ///   - own: The request.
  ///   - isFetched: Whether the request is sent if the entry has no fresh value.
  /// - Returns: The entry.
  private nonisolated func entry(of own: HTTPCacheKey, isFetched: Bool = false) -> Entry {
    let (entry, isFull) = index.withLock { index in
      let own = own.selecting(index.origins(own.url))
      let key = index.key(own.url, fields: own.fields, new: own, isFetched: isFetched)
      let entry = Entry(own: own, key: key, strays: index.strayCount(key.url, key))
      return (entry, index.isFull)
    }
    if isFull {
      let keys = Set(values.keys)
      // A failure that is remembered could no longer be forgotten with its URL.
      for key in index.withLock({ $0.prune(keeping: keys) }) { values.clearMemory(key) }
    }
    return entry
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
