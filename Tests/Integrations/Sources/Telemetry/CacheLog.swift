import Logging
import Metrics
import Plexus
import ServiceLifecycle

/// Logs when the fetches or the storage of a cache begin to fail, and when they work again.
///
/// The events can be those of one cache, or the result of `filter`, or of `merge` of AsyncAlgorithms.
struct CacheLog<Events: AsyncSequence & Sendable>: Service where Events.Element == CacheEvent {
  let name: String
  let events: Events
  let logger: Logger
  var quiet: Duration = .seconds(10)
  /// The time since the start.
  var now: @Sendable () -> Duration = { [start = ContinuousClock.now] in start.duration(to: .now) }

  func run() async throws {
    var fetches = Outage(quiet: quiet)
    var storage = Outage(quiet: quiet)
    for try await event in events.cancelOnGracefulShutdown() {
      switch event {
      case .fetched(_, _, let duration):
        time(duration, outcome: "value")
        log("fetches", fetches.succeeded(at: now()))
      case .fetchFailed(let key, let error, let duration):
        time(duration, outcome: "failure")
        logger.debug(
          "fetch failed",
          metadata: ["cache": "\(name)", "key": "\(key)", "error": "\(error)"]
        )
        // A definitive answer, such as 404, is no outage.
        if (error as? any OriginFailure)?.isOriginFailure == false { continue }
        log("fetches", fetches.failed(at: now()), error)
      case .flushed:
        log("storage", storage.succeeded(at: now()))
      case .restored:
        log("storage", storage.succeeded(at: now()))
      case .cacherFailed(_, let error):
        log("storage", storage.failed(at: now()), error)
      default:
        logger.trace("\(event)", metadata: ["cache": "\(name)"])
      }
    }
  }

  private func log(_ part: String, _ change: Outage.Change?, _ error: (any Error)? = nil) {
    switch change {
    case .began:
      logger.error(
        "\(part) fail",
        metadata: ["cache": "\(name)", "error": "\(error.map { "\($0)" } ?? "")"]
      )
    case .ended(let failures, let duration):
      logger.notice(
        "\(part) work again",
        metadata: ["cache": "\(name)", "failures": "\(failures)", "duration": "\(duration)"]
      )
    case nil:
      break
    }
  }

  private func time(_ duration: Duration, outcome: String) {
    Timer(
      label: "cache.fetch.duration",
      dimensions: [("cache.name", name), ("cache.fetch.outcome", outcome)],
      preferredDisplayUnit: .seconds
    ).recordNanoseconds(Int64(duration / .nanoseconds(1)))
  }
}
