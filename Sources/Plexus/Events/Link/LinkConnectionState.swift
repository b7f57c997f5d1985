/// The decisions of a connection: where it continues, and the fate of each message.
struct LinkConnectionState: Sendable {
  /// The fate of a message.
  enum Step: Hashable, Sendable {
    case handle
    /// It is the node's own, or was received before.
    case ignore
    /// It was handled before, and only the acknowledgement is missing.
    case acknowledge
    /// It is left out, with a report.
    case skip(LinkRejection)
    /// It is moved to the dead letters.
    case reject(LinkRejection)
  }

  /// A loss that the link cannot see.
  struct Gap: Hashable, Sendable {
    let lost: ClosedRange<LinkPosition>?
  }

  /// The number of messages whose ids are remembered.
  static let window = 4_096

  let mode: LinkMode
  let type: String
  let version: Int
  let origin: String
  /// Whether messages of this node that its group hands back to it count as handled.
  let ownsAreHandled: Bool

  /// The position up to which messages were received.
  ///
  /// A group continues where the engine says; the position shows whether the engine was set back.
  private(set) var position: LinkPosition?
  private var recent = RecentIDs(limit: Self.window)
  /// The number of interruptions since a message was received.
  private var failures = 0
  /// Whether the latest stream began with a loss that its link can report as well.
  private var hasReportedLoss = false

  init(mode: LinkMode, type: String, version: Int, origin: String, ownsAreHandled: Bool) {
    self.mode = mode
    self.type = type
    self.version = version
    self.origin = origin
    self.ownsAreHandled = ownsAreHandled
    if case .everyNode(let position) = mode { self.position = position }
  }

  /// The mode of the next stream of deliveries.
  var resumption: LinkMode {
    if case .everyNode = mode { .everyNode(from: position) } else { mode }
  }

  /// Records the beginning of a stream.
  ///
  /// - Returns: The loss since the last one, if the link does not report it.
  mutating func connect(at start: LinkPosition) -> Gap? {
    let gap = gap(before: start)
    position = start
    hasReportedLoss = gap != nil
    return gap
  }

  private func gap(before start: LinkPosition) -> Gap? {
    guard let position, position != start else { return nil }
    // An engine that was restarted with old data has lost messages, and delivers others again.
    if mode.group != nil { return start < position ? Gap(lost: nil) : nil }
    guard mode == .ephemeral else { return nil }
    guard position.epoch == start.epoch, position < start else { return Gap(lost: nil) }
    let first = LinkPosition(epoch: position.epoch, number: position.number + 1)
    return Gap(lost: first...start)
  }

  /// Records a loss that the link has reported.
  ///
  /// - Parameter lost: The positions of the lost messages, if they are known.
  /// - Returns: Whether it was not reported at the beginning of the stream.
  mutating func lose(_ lost: ClosedRange<LinkPosition>?) -> Bool {
    if mode.group != nil { position = nil }
    guard lost == nil, hasReportedLoss else { return true }
    hasReportedLoss = false
    return false
  }

  /// Records a message, and decides its fate.
  mutating func receive(_ message: LinkMessage, at place: LinkPosition, attempt: Int) -> Step {
    failures = 0
    hasReportedLoss = false
    if case .oneNode(_, _, let attempts) = mode {
      position = position.map { max($0, place) } ?? place
      if recent.contains(message.id) || ownsAreHandled && message.origin == origin {
        return .acknowledge
      }
      if attempt > attempts { return .reject(.tooManyAttempts) }
      return rejection(of: message).map { .reject($0) } ?? .handle
    }
    position = place
    guard message.origin != origin, recent.insert(message.id) else { return .ignore }
    return rejection(of: message).map { .skip($0) } ?? .handle
  }

  private func rejection(of message: LinkMessage) -> LinkRejection? {
    if message.type != type { return .foreignType(message.type) }
    if message.version != version { return .foreignVersion(message.version) }
    return nil
  }

  /// Records that the group's message was handled here: it is not handled again if its acknowledgement is lost.
  mutating func settle(_ message: LinkMessage) {
    recent.insert(message.id)
  }

  /// Returns whether a message that was not handled is delivered again.
  func isRetried(attempt: Int) -> Bool {
    guard case .oneNode(_, _, let attempts) = mode else { return false }
    return attempt < attempts
  }

  /// Records the end of a stream by an error.
  ///
  /// - Parameter duration: The time for which the stream has worked.
  /// - Returns: The pause before the next one: none at first, then up to 5 seconds.
  mutating func interrupt(after duration: Duration) -> Duration {
    if duration >= .seconds(10) { failures = 0 }
    defer { failures += 1 }
    guard failures > 0 else { return .zero }
    return min(.milliseconds(50) * (1 << min(failures - 1, 10)), .seconds(5))
  }
}

extension LinkConnectionState {
  /// The ids of the latest messages: at least a number of them, and at most twice as many.
  struct RecentIDs: Sendable {
    private let limit: Int
    private var latest: Set<String> = []
    /// The ids before the latest ones.
    ///
    /// They are forgotten together: to remove one for each message takes longer than the rest of the bookkeeping.
    private var earlier: Set<String> = []

    init(limit: Int) {
      self.limit = limit
    }

    func contains(_ id: String) -> Bool {
      latest.contains(id) || earlier.contains(id)
    }

    /// Adds an id.
    ///
    /// - Returns: Whether it was not known.
    @discardableResult
    mutating func insert(_ id: String) -> Bool {
      guard !earlier.contains(id), latest.insert(id).inserted else { return false }
      if latest.count == limit {
        earlier = latest
        latest = Set(minimumCapacity: limit)
      }
      return true
    }
  }
}
