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
  /// Whether stored values are those of several boards.
  var isShared = false
  /// The number of own changes that the server of several boards did not confirm.
  var unsentChanges = 0

  /// The counters of the board.
  struct Counts: Hashable, Sendable {
    let flights: Int
    let departed: Int
    let cancelled: Int
    let staleAnswers: Int
    let heard: Int

    init(_ state: BoardState) {
      flights = state.flightCount
      departed = state.departedCount
      cancelled = state.cancelledCount
      staleAnswers = state.staleAnswers
      heard = state.heardCount
    }
  }

  /// The lines to print.
  var text: String {
    let statistics = tally.statistics
    let shared = [
      ("changes heard", state.heard, "announced by another board first"),
      ("changes unsent", unsentChanges, "not confirmed by the server"),
    ]
    let groups: [[(String, Int, String)]] = [
      [
        ("flights", state.flights, "announced"),
        ("departed", state.departed, ""),
        ("cancelled", state.cancelled, ""),
      ] + (isShared ? shared : []),
      [
        ("requests", tally.requests, "from all rows; each is one of the next four"),
        ("hits", statistics.hits, "answered immediately from memory"),
        ("stale hits", statistics.staleHits, "answered immediately with an expired value"),
        ("joins", statistics.joins, "joined a fetch in flight"),
        ("misses", statistics.misses, "started a fetch, read the disk, or got a cached failure"),
      ],
      [
        ("fetches", tally.fetches, "over HTTP"),
        (
          "revalidated", tally.revalidated,
          "fetches answered with 304 Not Modified"
        ),
        isShared
          ? ("from boards", statistics.restorations, "values that another board has fetched")
          : ("from disk", statistics.restorations, "values of an earlier run"),
        ("failures", statistics.failures, "fetches that failed"),
        ("stale answers", state.staleAnswers, "shown with a mark"),
        ("badges", tally.badges, "images downloaded, at most one for each airline"),
      ],
      [
        ("origin requests", originRequests, "counted by the origin"),
        ("origin 304", originNotModified, "not modified, answered without a body"),
        ("origin 404", originNotFound, "not found, cached like any other response"),
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
