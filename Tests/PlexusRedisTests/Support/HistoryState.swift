/// The requests and clears of several processes, and the promises that they break.
///
/// A line is that of the program `SharedNode`. All times are nanoseconds of one clock. The time of a clear
/// ends after it has returned, and the time of a request begins before it: an order that is not certain breaks no promise.
struct HistoryState {
  /// A promise that is broken.
  enum Violation: Hashable {
    /// A request failed, although the origin does not fail.
    case failed
    /// The value is that of another key, or of a later time.
    case foreign
    /// The fetch of the value began before a clear that the request had to follow.
    case cleared
    /// The value is older than one that the process had returned before, and its fetch had ended before that of the other
    /// one began: fetches that overlap have no order.
    case wentBack
  }

  private struct Request {
    var process: Substring
    var begin: UInt64
    var end: UInt64
    var key: Substring
    var version: Int
    var fetched: UInt64
    var line: Substring
  }

  private struct Clear {
    var process: Substring
    var begin: UInt64
    var end: UInt64
    var isEverywhere: Bool
    var subject: Substring
    var line: Substring

    func concerns(_ key: Substring) -> Bool {
      subject.isEmpty || subject == key || key.hasPrefix("\(subject).")
    }
  }

  /// The longest value in a sequence of times, for all times up to each of them.
  private struct Steps<Value: Comparable, Event> {
    private var steps: [(time: UInt64, value: Value, event: Event)] = []

    init(_ events: [(time: UInt64, value: Value, event: Event)]) {
      for event in events.sorted(by: { $0.time < $1.time }) {
        if let last = steps.last, last.value >= event.value { continue }
        steps.append(event)
      }
    }

    /// Returns the largest value of a time before another one.
    func last(before time: UInt64) -> Event? {
      var (low, high) = (0, steps.count)
      while low < high {
        let middle = (low + high) / 2
        if steps[middle].time < time { low = middle + 1 } else { high = middle }
      }
      return low > 0 ? steps[low - 1].event : nil
    }
  }

  private var requests: [Request] = []
  private var clears: [Clear] = []
  private var damaged: [(Violation, Substring)] = []

  /// Reads a history.
  init(_ text: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      guard words.count >= 6, let begin = UInt64(words[2]), let end = UInt64(words[3]) else {
        damaged.append((.failed, line))
        continue
      }
      if words[0] == "clear" {
        clears.append(
          Clear(
            process: words[1],
            begin: begin,
            end: end,
            isEverywhere: words[4] == "everywhere",
            subject: words[5],
            line: line
          )
        )
      } else if words.count == 8, let version = Int(words[6]), let fetched = UInt64(words[7]) {
        requests.append(
          Request(
            process: words[1],
            begin: begin,
            end: end,
            key: words[4],
            version: version,
            fetched: fetched,
            line: line
          )
        )
        if words[4] != words[5] || fetched > end { damaged.append((.foreign, line)) }
      } else {
        damaged.append((.failed, line))
      }
    }
  }

  /// The number of requests.
  var requestCount: Int { requests.count }
  /// The number of clears that returned.
  var clearCount: Int { clears.count }

  /// Returns the broken promises, each with its lines.
  ///
  /// - Parameters:
  ///   - lease: The time after which a clear with the reach `.shared` has reached all other processes.
  ///   - lost: The times at which a clear ended that only a lost server had: with the reach `.shared`, it promises nothing
  ///     for the other processes.
  func violations(
    lease: UInt64,
    lost: ClosedRange<UInt64>? = nil
  ) -> [(violation: Violation, lines: String)] {
    var violations = damaged.map { ($0.0, String($0.1)) }
    for key in Set(requests.map(\.key)) {
      let requests = requests.filter { $0.key == key }
      let clears = clears.filter { $0.concerns(key) }
      let shared = Steps(
        clears.filter { $0.isEverywhere || lost?.contains($0.end) != true }
          .map { ($0.isEverywhere ? $0.end : $0.end + lease, $0.begin, $0) }
      )
      // The fetch of a value has ended when it was returned first.
      let fetchEnds = Dictionary(requests.map { ($0.fetched, $0.end) }, uniquingKeysWith: min)
      for process in Set(requests.map(\.process)) {
        let requests = requests.filter { $0.process == process }
        let own = Steps(clears.filter { $0.process == process }.map { ($0.end, $0.begin, $0) })
        let returned = Steps(requests.map { ($0.end, $0.version, $0) })
        for request in requests {
          for clears in [shared, own] {
            if let last = clears.last(before: request.begin), request.fetched < last.begin {
              violations.append((.cleared, "\(last.line)\n\(request.line)"))
            }
          }
          if let last = returned.last(before: request.begin), request.version < last.version,
            let end = fetchEnds[request.fetched], end < last.fetched
          {
            violations.append((.wentBack, "\(last.line)\n\(request.line)"))
          }
        }
      }
    }
    return violations
  }
}
