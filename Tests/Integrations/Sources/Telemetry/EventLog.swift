import Logging
import Metrics
import Plexus
import ServiceLifecycle

/// Logs when the connection of a topic is lost and when it is there again, and counts what happens to events.
struct EventLog<Reports: AsyncSequence & Sendable>: Service where Reports.Element == LinkReport {
  /// The result of `EventBus.shared.subscribe(to: LinkReport.self)`, or a part of it.
  let reports: Reports
  let logger: Logger
  /// The time after an event that was rejected in which further ones of its topic are only counted.
  var quiet: Duration = .seconds(60)
  /// The time since the start.
  var now: @Sendable () -> Duration = { [start = ContinuousClock.now] in start.duration(to: .now) }

  func run() async throws {
    var interrupted: Set<String> = []
    var rejected: [String: Duration] = [:]
    for try await report in reports.cancelOnGracefulShutdown() {
      let topic: Logger.Metadata = ["topic": "\(report.topic)"]
      switch report.content {
      case .interrupted(let error):
        count("interrupted", report.topic)
        guard interrupted.insert(report.topic).inserted else { continue }
        logger.error("events interrupted", metadata: topic.with("error", "\(error)"))
      case .connected:
        guard interrupted.remove(report.topic) != nil else { continue }
        logger.notice("events arrive again", metadata: topic)
      case .gap:
        count("gap", report.topic)
        logger.warning("events lost", metadata: topic)
      case .rejected(let message, _, let attempt, _):
        count("rejected", report.topic)
        let now = now()
        if let last = rejected[report.topic], now - last < quiet { continue }
        rejected[report.topic] = now
        logger.error(
          "event rejected",
          metadata: topic.with("id", "\(message.id)").with("attempt", "\(attempt)")
        )
      case .skipped: count("skipped", report.topic)
      case .postponed: count("postponed", report.topic)
      case .unconfirmed: count("unconfirmed", report.topic)
      case .unsent: count("unsent", report.topic)
      case .dropped(let number): count("dropped", report.topic, number)
      default: logger.debug("events", metadata: topic.with("report", "\(report.content)"))
      }
    }
  }

  private func count(_ outcome: String, _ topic: String, _ number: Int = 1) {
    Counter(
      label: "messaging.client.reports",
      dimensions: [("messaging.destination.name", topic), ("messaging.outcome", outcome)]
    ).increment(by: number)
  }
}

extension Logger.Metadata {
  fileprivate func with(_ key: String, _ value: Logger.MetadataValue) -> Logger.Metadata {
    merging([key: value]) { $1 }
  }
}
