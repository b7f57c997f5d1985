public import Foundation
public import Plexus

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A fetch over HTTP that revalidates values and follows the caching directives of the server.
///
/// Hand its ``fetch(_:)`` to a multiplexer, or call it in the closure of a map:
///
/// ```swift
/// import Foundation
/// import Plexus
/// import PlexusNetworking
///
/// func weather(at url: URL) -> Multiplexer<String> {
///   let fetcher = HTTPFetcher(url) { data in String(decoding: data, as: UTF8.self) }
///   return Multiplexer(policy: .http, onFetch: fetcher.fetch)
/// }
///
/// func pages(below url: URL) -> MultiplexerMap<String, Data> {
///   MultiplexerMap(policy: .http) { (name: String, context: FetchContext<Data>) in
///     try await HTTPFetcher(url.appending(path: name)) { $0 }.fetch(context)
///   }
/// }
/// ```
///
/// ## Caching directives
///
/// It is a cache of one user (RFC 9111, RFC 5861). A value is fresh for `max-age`, or until `Expires`, less
/// its age: what `Age` and `Date` say, and the time that the answer took. `no-cache` and `Vary: *` make it
/// stale at once. A stale one is requested with `If-None-Match` and `If-Modified-Since`; after 304 the value
/// stays, with the freshness that the 304 gives or the value came with. A value without any word about
/// freshness has the policy's time to live.
///
/// `stale-while-revalidate` and `stale-if-error` hold for that value in place of the policy: how long it is
/// returned at once while it is renewed, and how long it is used after a 5xx status or a failure that is no
/// status, never after a 4xx, after which a stale value is not used until its server confirms it.
/// `must-revalidate` and `no-cache` forbid both, also what the policy allows. A value that comes with `no-store` is
/// delivered to the waiting callers and is not stored; the value stored before it is removed.
///
/// Only `GET` and `HEAD` are asked under conditions; an answer to any other method is kept as long as it
/// says. A value that a redirect has led to is fresh no longer than the redirect, which is not at all after a
/// temporary one without a lifetime. A method that changes something makes other values stale: see `invalidate` of the initializers, and
/// ``HTTPCache``. `Retry-After`, as seconds or as a date, is the advice of the ``HTTPStatusError``: a retry
/// policy waits that long.
///
/// ## Cancellation
///
/// A fetch that is cancelled stops the transfer and throws a `CancellationError`.
///
/// ## Topics
///
/// ### Creating a fetch of the body
/// - ``init(_:transport:rules:decode:)``
/// - ``init(_:transport:rules:clock:now:invalidate:decode:)``
///
/// ### Creating a fetch of the whole answer
/// - ``init(_:transport:rules:clock:now:invalidate:)``
/// - ``init(_:transport:rules:clock:now:invalidate:update:decode:)``
/// - ``Invalidation``
///
/// ### Fetching
/// - ``fetch(_:)``
public struct HTTPFetcher<Value: Sendable>: Sendable {
  /// A closure that forgets the values of URLs.
  public typealias Invalidation = @concurrent @Sendable (Set<URL>) async throws -> Void

  private let request: URLRequest
  private let client: HTTPClient
  private let now: @Sendable () -> Date
  private let invalidate: Invalidation?
  private let update: (@Sendable (Value, HTTPResponse) -> Value)?
  private let decode: @concurrent @Sendable (HTTPResponse) async throws -> Value

  init(
    _ request: URLRequest,
    client: HTTPClient,
    now: @escaping @Sendable () -> Date,
    invalidate: Invalidation?,
    update: (@Sendable (Value, HTTPResponse) -> Value)?,
    decode: @escaping @concurrent @Sendable (HTTPResponse) async throws -> Value
  ) {
    self.request = request
    self.client = client
    self.now = now
    self.invalidate = invalidate
    self.update = update
    self.decode = decode
  }

  /// Creates a fetch whose values are made of the body.
  ///
  /// - Parameters:
  ///   - request: The request; conditions are added.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - clock: The clock that measures the time of the rules.
  ///   - now: A closure that returns the time of day, to compare with dates of the server.
  ///   - invalidate: A closure that is called with the URLs whose values are no longer valid, after an answer
  ///     without error to a method that changes something: that of the request, and those of the same origin
  ///     that `Location` and `Content-Location` name. The fetch waits for it, and throws what it throws.
  ///   - decode: A closure that makes the value of the body of a 2xx answer. It runs outside of every actor;
  ///     what it throws is thrown by the fetch. It is released with the fetcher.
  public init(
    _ request: URLRequest,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    invalidate: Invalidation? = nil,
    decode: @escaping @concurrent @Sendable (Data) async throws -> Value
  ) {
    self.init(
      request,
      client: HTTPClient(transport: transport, rules: rules, clock: clock),
      now: now,
      invalidate: invalidate,
      update: nil,
      decode: { try await decode($0.body) }
    )
  }

  /// Creates a fetch whose values are made of the whole answer, with its status and header fields.
  ///
  /// - Parameters:
  ///   - request: The request; conditions are added.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - clock: The clock that measures the time of the rules.
  ///   - now: A closure that returns the time of day, to compare with dates of the server.
  ///   - invalidate: A closure that is called with the URLs whose values are no longer valid.
  ///   - update: A closure that returns the value with the header fields of a 304, which confirms it; without
  ///     one the value stays as it is. It must be quick.
  ///   - decode: A closure that makes the value of a 2xx answer.
  @_disfavoredOverload
  public init(
    _ request: URLRequest,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    invalidate: Invalidation? = nil,
    update: (@Sendable (Value, HTTPResponse) -> Value)? = nil,
    decode: @escaping @concurrent @Sendable (HTTPResponse) async throws -> Value
  ) {
    self.init(
      request,
      client: HTTPClient(transport: transport, rules: rules, clock: clock),
      now: now,
      invalidate: invalidate,
      update: update,
      decode: decode
    )
  }

  /// Creates a fetch of the value at a URL, which is made of the body.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - decode: A closure that makes the value of the body of a 2xx answer, as for a request.
  public init(
    _ url: URL,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    decode: @escaping @concurrent @Sendable (Data) async throws -> Value
  ) {
    self.init(URLRequest(url: url), transport: transport, rules: rules, decode: decode)
  }

  /// Fetches the value, or finds out that the one there is has not changed.
  ///
  /// A 304 that names another version than the one there is, or comes from another address after a redirect,
  /// is not used: the value is requested again, without conditions.
  ///
  /// - Parameter context: The value that there is, if any, with what an earlier fetch returned for it.
  /// - Returns: The value, what its server says about keeping it, and what the next fetch needs to ask
  ///   whether it has changed.
  /// - Throws: ``HTTPStatusError`` for an answer that is neither 2xx nor an expected 304, and for a part
  ///   (206) that the request did not ask for; `URLError` if there is no answer, or one that breaks off;
  ///   ``HTTPRevalidationError`` in its place if the cached value must not be used; a
  ///   `CancellationError` if the fetch is cancelled; what the decoder throws.
  @concurrent
  public func fetch(_ context: FetchContext<Value>) async throws -> FetchResult<Value> {
    try await fetch(context, with: client.credentials()) { _ in true }
  }

  /// An answer as a cache takes it.
  struct Answer {
    let exchange: HTTPExchange
    let freshness: HTTPFreshness
    /// The names of the header fields that have selected it.
    let vary: String?
    /// Whether its server and the request allow to keep it.
    let isKept: Bool
    /// Whether it is an error that is not remembered.
    var isPassing = false
  }

  /// Fetches the value with some credentials, unless it turns out that its answer cannot be stored.
  ///
  /// - Parameters:
  ///   - context: The value that there is, if any.
  ///   - credentials: The credentials of all requests.
  ///   - stores: Returns whether the answer can be stored.
  /// - Returns: The value, for the callers alone if it cannot be stored.
  /// - Throws: The errors of ``fetch(_:)``.
  @concurrent
  func fetch(
    _ context: FetchContext<Value>,
    with credentials: HTTPCredentials,
    stores: @Sendable (Answer) -> Bool
  ) async throws -> FetchResult<Value> {
    guard
      let value = context.previousValue,
      let known = context.validator.map(HTTPValidator.init(text:))
    else {
      return try await result(of: exchange(request, known: nil, credentials), known: nil, stores)
    }
    guard let conditional = request.asking(whether: known) else {
      return try await result(
        of: exchange(request, known: known, credentials),
        known: known,
        stores
      )
    }
    let exchange = try await exchange(conditional, known: known, credentials)
    guard exchange.response.status == 304 else {
      return try await result(of: exchange, known: known, stores)
    }
    guard exchange.confirms(known) else {
      let whole = try await self.exchange(request, known: known, credentials)
      return try await result(of: whole, known: known, stores)
    }
    let freshness = exchange.freshness { exchange[$0] ?? known[$0] }
    let current = update?(value, exchange.response)
    let isKept = !isKeptNowhere(freshness)
    let answer = Answer(
      exchange: exchange,
      freshness: freshness,
      vary: exchange.vary(known),
      isKept: isKept
    )
    guard stores(answer), isKept else { return .transient(current ?? value) }
    let validator = exchange.validator(freshness, renewing: known).text
    guard let current else {
      return .notModified(directives: freshness.directives, validator: validator)
    }
    return .confirmed(current, directives: freshness.directives, validator: validator)
  }

  /// Returns the result of an answer that does not confirm the cached value.
  private func result(
    of exchange: HTTPExchange,
    known: HTTPValidator?,
    _ stores: (Answer) -> Bool
  ) async throws -> FetchResult<Value> {
    let response = exchange.response
    let invalidated = exchange.invalidated
    if !invalidated.isEmpty { try await invalidate?(invalidated) }
    let isPart = response.status == 206 && request.value(forHTTPHeaderField: "Range") == nil
    guard (200..<300).contains(response.status), !isPart else {
      throw HTTPStatusError(
        status: response.status,
        url: response.url,
        headers: response.headers,
        body: response.body.prefix(BodyCollector.errorBytes),
        retryAfter: exchange["Retry-After"]
          .flatMap { HTTPFreshness.retryAfter($0, now: exchange.arrival) }
          .map { .seconds($0) },
        allowsStaleValue: response.status >= 500
          && known?.allowsStaleAfterError(now: exchange.arrival) == true,
        lifetime: lifetime(ofFailure: exchange, stores)
      )
    }
    let value = try await decode(response.withoutConnection)
    let freshness = exchange.freshness { exchange[$0] }
    let isKept = !isKeptNowhere(freshness)
    let answer = Answer(
      exchange: exchange,
      freshness: freshness,
      vary: exchange.vary(),
      isKept: isKept
    )
    guard stores(answer), isKept else { return .transient(value) }
    return .value(
      value,
      directives: freshness.directives,
      validator: exchange.validator(freshness).text
    )
  }

  /// Returns how long an answer with an error status is remembered; `nil` unless its server says so.
  private func lifetime(
    ofFailure exchange: HTTPExchange,
    _ stores: (Answer) -> Bool
  ) -> Duration? {
    let freshness = exchange.freshness { exchange[$0] }
    let isRemembered =
      request.asksForValue && exchange.response.status != 304 && !isKeptNowhere(freshness)
      && freshness.lifetime ?? 0 > 0 && !exchange.isRejectionOfToken
    let answer = Answer(
      exchange: exchange,
      freshness: freshness,
      vary: exchange.vary(),
      isKept: isRemembered,
      isPassing: !isRemembered
    )
    return stores(answer) && isRemembered ? freshness.lifetime.map { .seconds($0) } : nil
  }

  /// Whether the server or the request itself forbids to keep the answer.
  private func isKeptNowhere(_ freshness: HTTPFreshness) -> Bool {
    let asked = request.value(forHTTPHeaderField: "Cache-Control").map(HTTPFreshness.directives)
    return freshness.noStore || asked?["no-store"] != nil
  }

  /// Sends a request and waits for the whole answer.
  private func exchange(
    _ request: URLRequest,
    known: HTTPValidator?,
    _ credentials: HTTPCredentials
  ) async throws -> HTTPExchange {
    let begin = now()
    do {
      let collector = BodyCollector()
      let trail = try await client.send(request, with: credentials, to: collector)
      let end = now()
      return HTTPExchange(
        request: request,
        response: try collector.answer(from: trail.url),
        trail: trail,
        arrival: Int64(end.timeIntervalSince1970),
        delay: Int64(max(0, end.timeIntervalSince(begin))),
        isOfToken: !credentials.accounts.isEmpty
      )
    } catch {
      guard
        (error as? any ConnectivityFailure)?.isConnectivityFailure == true,
        known?.forbidsUse(now: Int64(now().timeIntervalSince1970)) == true
      else { throw error }
      throw HTTPRevalidationError(underlying: error)
    }
  }
}

extension HTTPFetcher where Value == HTTPResponse {
  /// Creates a fetch whose values are the answers themselves.
  ///
  /// After a 304 a value has the header fields of the 304, and its own where that has none.
  ///
  /// - Parameters:
  ///   - request: The request; conditions are added.
  ///   - transport: The HTTP client.
  ///   - rules: The rules for redirects, cookies, size and time.
  ///   - clock: The clock that measures the time of the rules.
  ///   - now: A closure that returns the time of day, to compare with dates of the server.
  ///   - invalidate: A closure that is called with the URLs whose values are no longer valid.
  public init(
    _ request: URLRequest,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = HTTPRules(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    invalidate: Invalidation? = nil
  ) {
    self.init(
      request,
      client: HTTPClient(transport: transport, rules: rules, clock: clock),
      now: now,
      invalidate: invalidate,
      update: { $0.updated(by: $1) },
      decode: { $0 }
    )
  }
}
