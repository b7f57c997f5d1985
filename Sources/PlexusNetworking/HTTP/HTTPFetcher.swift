public import Foundation
public import Plexus

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A fetch over HTTP that asks whether a value has changed instead of loading it again, and heeds what the server
/// says about keeping it.
///
/// Hand its ``fetch(_:)`` to a multiplexer, or call it in the closure of a map:
///
/// ```swift
/// import Foundation
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
/// ## What of HTTP it heeds
///
/// It is a cache of one user (RFC 9111). A value is fresh for `max-age` less `Age` and the time that the answer took,
/// or until `Expires`; `no-cache` and `no-store` make it stale at once. A stale one is asked for with `If-None-Match` and
/// `If-Modified-Since`; after 304 the value stays, with the freshness that the 304 gives. A value without any
/// word about freshness has the policy's time to live. With `CachePolicy.http` a value stands in for an error status as
/// long as `stale-if-error` allows (RFC 5861), and for a failure of connectivity unless `must-revalidate`,
/// `no-cache` or `no-store` forbid it.
///
/// `Retry-After`, as seconds or as a date, is the advice of the ``HTTPStatusError``: a retry policy waits that long.
///
/// How long a stale value is handed out at once while it is renewed, is up to the policy's
/// `staleWhileRevalidate`, not to the answer. A value that came with `no-store` stays in memory until the next
/// fetch ends, though no request is answered with it; give its multiplexer no cacher.
///
/// ## Cancellation
///
/// A fetch that is cancelled stops the transfer and throws a `CancellationError`.
public struct HTTPFetcher<Value: Sendable>: Sendable {
  private let request: URLRequest
  private let session: URLSession
  private let now: @Sendable () -> Date
  private let decode: @concurrent @Sendable (Data) async throws -> Value

  /// Creates a fetch.
  ///
  /// - Parameters:
  ///   - request: What is sent; conditions are added.
  ///   - session: What sends it; one without a cache of its own that all fetchers share, if there is none. A session
  ///     with a cache would answer in the server's place.
  ///   - now: What tells the time of day, to compare with dates of the server.
  ///   - decode: Makes the value of the body of a 2xx answer. It runs outside of every actor; what it throws is thrown
  ///     by the fetch. It is released with the fetcher.
  public init(
    _ request: URLRequest,
    session: URLSession? = nil,
    now: @escaping @Sendable () -> Date = { Date() },
    decode: @escaping @concurrent @Sendable (Data) async throws -> Value
  ) {
    self.request = request
    self.session = session ?? sharedSession
    self.now = now
    self.decode = decode
  }

  /// Creates a fetch of what is at a URL.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - session: What asks for it; one without a cache of its own that all fetchers share, if there is none.
  ///   - decode: Makes the value of the body of a 2xx answer, as for a request.
  public init(
    _ url: URL,
    session: URLSession? = nil,
    decode: @escaping @concurrent @Sendable (Data) async throws -> Value
  ) {
    self.init(URLRequest(url: url), session: session, decode: decode)
  }

  /// Fetches the value, or finds out that the one there is has not changed.
  ///
  /// - Parameter context: The value that there is, if any, with what an earlier fetch returned for it.
  /// - Returns: The value, for how long it is fresh, and what the next fetch needs to ask whether it has changed.
  /// - Throws: ``HTTPStatusError`` for an answer that is neither 2xx nor an expected 304; `URLError` if there is
  ///   none, or one that breaks off; ``HTTPRevalidationError`` in its place if the value that there is must
  ///   not stand in; a `CancellationError` if the fetch is cancelled; what the decoder throws.
  @concurrent
  public func fetch(_ context: FetchContext<Value>) async throws -> FetchResult<Value> {
    var request = request
    let known =
      context.previousValue == nil ? nil : context.validator.map(HTTPValidator.init(text:))
    if let tag = known?.entityTag { request.setValue(tag, forHTTPHeaderField: "If-None-Match") }
    if let date = known?.lastModified {
      request.setValue(date, forHTTPHeaderField: "If-Modified-Since")
    }
    let begin = seconds()
    let (data, response) = try await answer(to: request, known: known)
    let arrival = seconds()
    let freshness = HTTPFreshness(now: arrival, delay: arrival - begin) {
      response.value(forHTTPHeaderField: $0)
    }
    switch response.statusCode {
    case 200..<300:
      let value = try await decode(data)
      return result(value, validator(of: response, freshness, at: arrival), freshness)
    case 304:
      guard let known, let value = context.previousValue else { fallthrough }
      let validator = validator(of: response, freshness, at: arrival, known: known)
      return result(value, validator, freshness)
    default:
      throw HTTPStatusError(
        status: response.statusCode,
        retryAfter: response.value(forHTTPHeaderField: "Retry-After")
          .flatMap { HTTPFreshness.retryAfter($0, now: arrival) }
          .map { .seconds($0) },
        allowsStaleValue: known?.allowsStaleAfterError(now: arrival) == true
      )
    }
  }

  private func seconds() -> Int { Int(now().timeIntervalSince1970) }

  private func result(
    _ value: Value,
    _ validator: HTTPValidator,
    _ freshness: HTTPFreshness
  ) -> FetchResult<Value> {
    .value(
      value,
      timeToLive: freshness.lifetime.map { .seconds($0) },
      validator: validator.text
    )
  }

  /// What the next fetch is told: fields that a 304 leaves out stay as they were.
  private func validator(
    of response: HTTPURLResponse,
    _ freshness: HTTPFreshness,
    at arrival: Int,
    known: HTTPValidator? = nil
  ) -> HTTPValidator {
    var validator = known ?? HTTPValidator()
    if let tag = response.value(forHTTPHeaderField: "ETag") { validator.entityTag = tag }
    if let date = response.value(forHTTPHeaderField: "Last-Modified") {
      validator.lastModified = date
    }
    validator.staleFrom = arrival + (freshness.lifetime ?? 0)
    if known == nil || response.value(forHTTPHeaderField: "Cache-Control") != nil {
      validator.staleIfError = freshness.staleIfError
      validator.forbidsStale = freshness.mustRevalidate || freshness.noStore
    }
    return validator
  }

  private func answer(
    to request: URLRequest,
    known: HTTPValidator?
  ) async throws -> (Data, HTTPURLResponse) {
    do {
      let (data, response) = try await session.data(for: request)
      guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
      return (data, response)
    } catch let error as URLError where error.code == .cancelled {
      throw CancellationError()
    } catch let error as URLError {
      let error = error.namingLostConnections
      guard known?.forbidsStale == true, error.isConnectivityFailure else { throw error }
      throw HTTPRevalidationError(underlying: error)
    }
  }
}

/// Sends for all fetchers that have no session of their own; nothing is cached in it.
private let sharedSession: URLSession = {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.urlCache = nil
  configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
  return URLSession(configuration: configuration)
}()

extension URLError {
  /// The same error, but for an answer that breaks off: on Linux that has no name of its own.
  var namingLostConnections: URLError {
    code == .unknown ? URLError(.networkConnectionLost, userInfo: userInfo) : self
  }
}
