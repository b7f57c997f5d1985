import Plexus

/// The counters of a run.
enum Summary {
  /// Returns the text of the counters.
  ///
  /// - Parameters:
  ///   - state: The state of the board at the end.
  ///   - originCount: The number of requests, as counted by the origin.
  ///   - badgeCount: The number of requests for badges among them.
  ///   - pageCount: The number of requests for pages of the timetable among them.
  ///   - sentCount: The number of changes that were sent to other boards, or `nil` if nothing is shared.
  /// - Returns: The lines.
  static func text(
    _ state: BoardState,
    originCount: Int,
    badgeCount: Int,
    pageCount: Int,
    sentCount: Int?
  ) -> String {
    let statistics = state.statistics
    var flights = [
      line("flights", state.flightCount, "announced"),
      line("departed", state.departedCount),
      line("cancelled", state.cancelledCount),
    ]
    if let sentCount {
      flights.append(line("changes heard", state.heardCount, "announced by another board first"))
      flights.append(line("changes sent", sentCount, "confirmed by the server"))
    }
    let requests = [
      line("requests", statistics.requests, "from all rows; each is one of the next four"),
      line("hits", statistics.hits, "answered immediately from memory"),
      line("stale hits", statistics.staleHits, "answered immediately with an expired value"),
      line("joins", statistics.joins, "joined a fetch in flight"),
      line("misses", statistics.misses, "started a fetch, read the disk, or got a cached failure"),
    ]
    let restored = sentCount == nil ? "from disk" : "from boards"
    let source = sentCount == nil ? "an earlier run" : "other boards"
    let fetches = [
      line("fetches", statistics.newFetches, "over HTTP"),
      line("revalidated", statistics.revalidations, "fetches answered with 304 Not Modified"),
      line(restored, statistics.restorations, "values of \(source)"),
      line("failures", statistics.failures, "fetches that failed"),
      line("stale answers", state.staleCount, "shown with a mark"),
      line("badges", badgeCount, "images downloaded, at most one for each airline"),
      line("pages", pageCount, "of the timetable, loaded by scrolling"),
      line("origin requests", originCount, "counted by the origin"),
    ]
    return [flights, requests, fetches].map { $0.joined(separator: "\n") + "\n" }
      .joined(separator: "\n")
  }

  private static func line(_ name: String, _ count: Int, _ remark: String = "") -> String {
    let number = String(count)
    let padding = String(repeating: " ", count: max(1, 6 - number.count))
    return name.fitted(to: 16) + padding + number + (remark.isEmpty ? "" : "  \(remark)")
  }
}
