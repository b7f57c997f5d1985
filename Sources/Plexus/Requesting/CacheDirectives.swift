/// Caching rules that come with a value and take precedence over the policy.
///
/// A fetch returns them with ``FetchResult/value(_:directives:validator:)``. Where a directive is omitted, the
/// ``CachePolicy`` applies.
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
/// ## Failures
///
/// After a failed fetch, the stale value is used if the policy's ``CachePolicy/usesCachedValue`` *or* ``staleIfError``
/// allows it. Only ``requiresRevalidation`` forbids it, whatever the others say. The deadline of the value is never
/// extended, and the value is not dropped.
///
/// ## Topics
///
/// ### Creating directives
/// - ``init(timeToLive:staleWhileRevalidate:staleIfError:requiresRevalidation:)``
/// - ``init(from:)``
///
/// ### Directives
/// - ``timeToLive``
/// - ``staleWhileRevalidate``
/// - ``staleIfError``
/// - ``requiresRevalidation``
public struct CacheDirectives: Hashable, Sendable {
  /// The time for which the value is fresh, from the end of its fetch; `nil` for the time to live of the policy.
  ///
  /// It applies exactly, without jitter.
  public var timeToLive: Duration?

  /// The time after the time to live during which the value is still returned immediately, while one fetch renews it in
  /// the background; `nil` for the time of the policy.
  ///
  /// It also limits the age at which ``CachePolicy/softTimeout`` returns the value.
  public var staleWhileRevalidate: Duration?

  /// The time after the time to live during which the value is used after a failed fetch, whatever the policy says.
  ///
  /// With `nil` or zero, only the policy decides. All errors qualify, except cancellation and an ``OriginFailure``
  /// whose ``OriginFailure/isOriginFailure`` is `false`. The time is measured from the deadline of the value and is not
  /// extended by failures. A stored copy counts once it has been read: before the fetch, if the policy says so, or
  /// after an error for which the policy allows a cached value.
  public var staleIfError: Duration?

  /// Whether the value must not be used past its time to live until a fetch has confirmed or replaced it.
  ///
  /// If so, no stale value is returned, neither while it is renewed nor after an error, whatever the policy and the
  /// other directives say. The value is not dropped: it remains available to ``Multiplexer/cachedValue`` and the next
  /// fetch.
  public var requiresRevalidation: Bool

  /// Creates directives.
  ///
  /// - Parameters:
  ///   - timeToLive: How long the value is fresh.
  ///   - staleWhileRevalidate: How long after that it is returned while it is renewed.
  ///   - staleIfError: How long after its time to live it is used after a failed fetch.
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
  /// Reads encoded directives, for example for a ``Cacher`` of your own.
  ///
  /// - Parameter decoder: The decoder. The policy decides about directives that are missing in its data.
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
