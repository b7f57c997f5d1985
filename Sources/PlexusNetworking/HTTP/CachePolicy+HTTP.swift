public import Plexus

extension CachePolicy {
  /// A policy that leaves to the server how long values are fresh, for fetches by an ``HTTPFetcher``.
  ///
  /// A value without Cache-Control and Expires is stale at once, so that every request asks whether it has
  /// changed. The cached value is used after a failure of connectivity, and after a 5xx status if
  /// the server has allowed it (stale-if-error), unless the server forbids it. A stored copy is read before
  /// the first fetch, which it may save, or let end with 304. All other properties have their defaults.
  ///
  /// ```swift
  /// var policy = CachePolicy.http
  /// policy.staleWhileRevalidate = .seconds(60)
  /// ```
  public static var http: CachePolicy {
    var policy = CachePolicy()
    policy.timeToLive = .zero
    policy.cacherRead = .beforeFetch
    policy.usesCachedValue = { error in
      (error as? HTTPStatusError)?.allowsStaleValue == true
        || (error as? any ConnectivityFailure)?.isConnectivityFailure == true
    }
    return policy
  }
}
