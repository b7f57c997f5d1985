import Plexus

/// The counters of a run.
struct Summary: Hashable, Sendable {
  let state: Counts
  let tally: LookupTally
  /// The number of requests, as counted by the origin.
  let originRequests: Int
  /// The number of requests answered with 304.
  let originNotModified: Int
  /// The number of requests answered with 404.
  let originNotFound: Int

  /// The counters of the board.
  struct Counts: Hashable, Sendable {
    let flights: Int
    let departed: Int
    let cancelled: Int
    let staleAnswers: Int

    init(_ state: BoardState) {
      flights = state.flightCount
      departed = state.departedCount
      cancelled = state.cancelledCount
      staleAnswers = state.staleAnswers
    }
  }

  /// The lines to print.
  var text: String {
    let statistics = tally.statistics
    let groups: [[(String, Int, String)]] = [
      [
        ("flights", state.flights, "announced"),
        ("departed", state.departed, ""),
        ("cancelled", state.cancelled, ""),
      ],
      [
        ("requests", tally.requests, "by all rows; each is one of the next four"),
        ("hits", statistics.hits, "answered at once from memory"),
        ("stale hits", statistics.staleHits, "answered at once, but too old"),
        ("joins", statistics.joins, "waited for a fetch begun by another row"),
        ("misses", statistics.misses, "began a fetch or read the disk, or were told of a failure"),
      ],
      [
        ("fetches", tally.fetches, "over HTTP"),
        (
          "revalidated", tally.revalidated,
          "asked over HTTP whether they have changed: they have not"
        ),
        ("from disk", statistics.restorations, "copies that an earlier run has left"),
        ("failures", statistics.failures, "fetches that failed"),
        ("stale answers", state.staleAnswers, "shown and marked"),
        ("badges", tally.badges, "images downloaded, one for each airline at most"),
      ],
      [
        ("origin requests", originRequests, "counted by the origin"),
        ("origin 304", originNotModified, "not modified: answered without the weather"),
        ("origin 404", originNotFound, "not listed, which is an answer as well"),
      ],
    ]
    return groups.map { $0.map(Self.line).joined() }.joined(separator: "\n")
  }

  private static func line(_ name: String, _ count: Int, _ remark: String) -> String {
    let number = String(count)
    let padding = String(repeating: " ", count: max(1, 6 - number.count))
    let line = name.fitted(to: 16) + padding + number
    return (remark.isEmpty ? line : "\(line)  \(remark)") + "\n"
  }
}
