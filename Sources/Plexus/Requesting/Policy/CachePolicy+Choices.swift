extension CachePolicy {
  /// The moment at which a multiplexer reads its stored copy: before a fetch, or only after a failed one.
  public enum CacherRead: Hashable, Sendable {
    /// After a fetch has failed with an error for which the policy allows a cached value.
    case afterConnectivityError
    /// Before the first fetch, so that stored values are available immediately after a launch.
    case beforeFetch
  }

  /// The behavior of a fetch when its last caller leaves.
  public enum UnobservedFetch: Hashable, Sendable {
    /// The fetch continues, and its value is stored for later requests.
    case finishAndStore
    /// The fetch is cancelled, and nothing is stored.
    ///
    /// Live subscriptions count as callers of all fetches of their key. A fetch that started without a caller, behind a
    /// stale value or for a refresh during a fetch, is not cancelled when a caller that has joined it leaves.
    ///
    /// After a refresh during a fetch, another one follows. It does not start if all of its callers have left, or if the
    /// fetch before it was cancelled and it has no callers; the value is then outdated, and the next request fetches it.
    case cancel
  }
}
