/// The rules that every request keeps to, whatever transport sends it.
///
/// The defaults are meant for URLs and servers that are not trusted: credentials stay at the origin that they
/// are meant for, no cookies are kept, and an answer is limited in size and time.
///
/// ```swift
/// import PlexusNetworking
///
/// var rules = HTTPRules()
/// rules.redirects.limit = 3
/// rules.redirects.credentials.append("X-API-Key")
/// rules.maximumBodyBytes = 1 << 20
/// rules.totalTimeout = .seconds(30)
/// ```
///
/// ## Topics
///
/// ### Creating rules
/// - ``init(redirects:cookies:maximumBodyBytes:totalTimeout:minimumRate:allowsFileURLs:)``
/// - ``media``
///
/// ### Trust
/// - ``redirects``
/// - ``cookies``
/// - ``allowsFileURLs``
///
/// ### Size and time
/// - ``maximumBodyBytes``
/// - ``totalTimeout``
/// - ``minimumRate``
public struct HTTPRules: Sendable {
  /// The rules for redirects.
  public var redirects: HTTPRedirectRules

  /// The cookies that are sent and kept; `nil` for none.
  ///
  /// Fetchers share cookies if their rules have the same jar.
  public var cookies: HTTPCookieJar?

  /// The largest number of bytes of a body, after its content coding was removed; `nil` for any number.
  ///
  /// A larger one ends the transfer with `URLError.dataLengthExceedsMaximum`. A few kilobytes can decompress to
  /// gigabytes.
  public var maximumBodyBytes: Int64?

  /// The longest time that a request can take, with its redirects and the last byte of the body; `nil` for any
  /// time.
  ///
  /// After that it fails with `URLError.timedOut`.
  public var totalTimeout: Duration?

  /// The least rate of bytes of the body; `nil` for any rate.
  ///
  /// A transfer fails with `URLError.timedOut` if it is slower. The time until the answer begins counts, too.
  public var minimumRate: HTTPRate?

  /// Whether a `file` URL is read.
  ///
  /// No redirect ever leads to one. Without permission it fails with `URLError.unsupportedURL`, at a media loader with
  /// ``MediaError/unsupportedScheme(_:)``.
  public var allowsFileURLs: Bool

  /// Creates rules.
  ///
  /// - Parameters:
  ///   - redirects: The rules for redirects.
  ///   - cookies: The cookies that are sent and kept.
  ///   - maximumBodyBytes: The largest number of bytes of a body; 64 MB by default.
  ///   - totalTimeout: The longest time that a request can take; five minutes by default.
  ///   - minimumRate: The least rate of bytes of the body; a kilobyte a minute by default.
  ///   - allowsFileURLs: Whether a `file` URL is read.
  /// - Precondition: The number of bytes is not negative, and the time is positive.
  public init(
    redirects: HTTPRedirectRules = HTTPRedirectRules(),
    cookies: HTTPCookieJar? = nil,
    maximumBodyBytes: Int64? = 64 << 20,
    totalTimeout: Duration? = .seconds(300),
    minimumRate: HTTPRate? = HTTPRate(bytes: 1_024, per: .seconds(60)),
    allowsFileURLs: Bool = false
  ) {
    precondition(maximumBodyBytes ?? 0 >= 0, "A limit of bytes cannot be negative")
    precondition(totalTimeout ?? .seconds(1) > .zero, "A timeout must be positive")
    self.redirects = redirects
    self.cookies = cookies
    self.maximumBodyBytes = maximumBodyBytes
    self.totalTimeout = totalTimeout
    self.minimumRate = minimumRate
    self.allowsFileURLs = allowsFileURLs
  }

  /// The rules of media loaders: the defaults, but for `file` URLs, which are used in place, and for files of
  /// any size, which can take any time at a kilobyte a minute.
  public static var media: HTTPRules {
    HTTPRules(maximumBodyBytes: nil, totalTimeout: nil, allowsFileURLs: true)
  }
}

/// A number of bytes in each stretch of some length.
public struct HTTPRate: Sendable, Hashable {
  /// The number of bytes.
  public let bytes: Int

  /// The length of a stretch.
  public let duration: Duration

  /// Creates a rate.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes.
  ///   - duration: The length of a stretch. The first one begins with the request.
  /// - Precondition: Both are positive.
  public init(bytes: Int, per duration: Duration) {
    precondition(bytes > 0 && duration > .zero, "A rate must be positive")
    self.bytes = bytes
    self.duration = duration
  }
}
