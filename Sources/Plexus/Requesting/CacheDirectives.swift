/// What the origin of a value says about keeping it, which holds for that value in place of the policy.
///
/// A fetch returns it with ``FetchResult/value(_:directives:validator:)``. What it leaves out is up to the
/// ``CachePolicy``.
///
/// ```swift
/// let rates = Multiplexer { (_: FetchContext<[String]>) in
///   .value(
///     ["EUR"],
///     directives: CacheDirectives(timeToLive: .seconds(60), staleIfError: .seconds(3_600))
///   )
/// }
/// ```
///
/// ## Failing
///
/// After a failed fetch the value stands in if the policy's ``CachePolicy/usesCachedValue`` allows it, *or*
/// if ``staleIfError`` does: each of them permits, and neither forbids what the other one permits. Only
/// ``requiresRevalidation`` forbids, and then whatever the other two say. In no case is the deadline of the
/// value extended, or the value dropped.
public struct CacheDirectives: Hashable, Sendable {
  /// How long the value is fresh, from the end of its fetch; `nil` for the time to live of the policy.
  ///
  /// It is kept exactly, without jitter.
  public var timeToLive: Duration?

  /// How long after its time to live the value is still handed out at once, while one fetch renews it in the
  /// background; `nil` for the time of the policy.
  public var staleWhileRevalidate: Duration?

  /// How long after its time to live the value stands in for one that could not be fetched, whatever the
  /// policy says of the error; `nil` or zero if only the policy decides.
  ///
  /// Every error counts, but for an ``OriginFailure`` that says that it is none, and for cancellation. The
  /// time goes on when a fetch fails: it is counted from the deadline of the value. A stored copy counts
  /// where it has been read: by a policy that does so before it fetches, or after an error for which the
  /// policy allows a cached value.
  public var staleIfError: Duration?

  /// Whether the value must not be used any more once it is past its time to live, until a fetch has
  /// confirmed or replaced it.
  ///
  /// Then nothing stale is handed out, neither while it is renewed nor after an error, whatever the policy
  /// and the other directives say. The value is not dropped: ``Multiplexer/cachedValue`` and the next fetch
  /// still have it.
  public var requiresRevalidation: Bool

  /// Creates directives.
  ///
  /// - Parameters:
  ///   - timeToLive: How long the value is fresh.
  ///   - staleWhileRevalidate: How long it is handed out after that, while it is renewed.
  ///   - staleIfError: How long it stands in after that for one that could not be fetched.
  ///   - requiresRevalidation: Whether it must not be used once it is stale.
  public init(
    timeToLive: Duration? = nil,
    staleWhileRevalidate: Duration? = nil,
    staleIfError: Duration? = nil,
    requiresRevalidation: Bool = false
  ) {
    self.timeToLive = timeToLive
    self.staleWhileRevalidate = staleWhileRevalidate
    self.staleIfError = staleIfError
    self.requiresRevalidation = requiresRevalidation
  }
}

extension CacheDirectives: Codable {
  /// Reads directives that an encoder has written, for instance for a ``Cacher`` of your own.
  ///
  /// - Parameter decoder: Where they are read from. What is not there is left to the policy.
  /// - Throws: The error of the decoder.
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    timeToLive = try values.decodeIfPresent(Duration.self, forKey: .timeToLive)
    staleWhileRevalidate = try values.decodeIfPresent(Duration.self, forKey: .staleWhileRevalidate)
    staleIfError = try values.decodeIfPresent(Duration.self, forKey: .staleIfError)
    requiresRevalidation =
      try values.decodeIfPresent(Bool.self, forKey: .requiresRevalidation) ?? false
  }

  private enum CodingKeys: String, CodingKey {
    case timeToLive, staleWhileRevalidate, staleIfError, requiresRevalidation
  }
}

extension ValueTerms {
  @usableFromInline
  init(_ directives: CacheDirectives) {
    self.init()
    timeToLive = directives.timeToLive.map { Nanoseconds(saturating: $0) }
    staleWhileRevalidate = directives.staleWhileRevalidate.map { Nanoseconds(saturating: $0) }
    staleIfError = directives.staleIfError.map { Nanoseconds(saturating: $0) }
    requiresRevalidation = directives.requiresRevalidation
  }

  var directives: CacheDirectives {
    CacheDirectives(
      timeToLive: timeToLive.map { .nanoseconds($0) },
      staleWhileRevalidate: staleWhileRevalidate.map { .nanoseconds($0) },
      staleIfError: staleIfError.map { .nanoseconds($0) },
      requiresRevalidation: requiresRevalidation
    )
  }
}
