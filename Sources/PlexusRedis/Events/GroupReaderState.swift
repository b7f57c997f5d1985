internal import Plexus

/// The reading of a topic by a node that shares its messages with the other nodes of a group.
///
/// The messages that were read are renewed until they are acknowledged, or the reader asks for the next one without an
/// acknowledgement. Messages that are not renewed are claimed by the readers of the group.
///
/// To the engine, the first message that it has for a reader is the one in progress, and later ones are read ahead. The
/// reader therefore delivers messages in order, and gives back one that is neither acknowledged nor rejected before it
/// delivers the next one.
struct GroupReaderState: EventReaderState {
  struct Item: Sendable {
    let position: LinkPosition
    /// The id of the message as the engine has it.
    let identity: [UInt8]
    let message: LinkMessage
    let attempt: Int
    /// Whether the engine has lost messages before this one.
    var isAfterLoss = false

    init(_ entry: MessageFormat.Entry, attempt: Int) {
      position = entry.position
      identity = entry.identity
      message = entry.message
      self.attempt = attempt
      isAfterLoss = entry.isAfterLoss && attempt == 1
    }
  }

  /// The last position that the group had read when the reader looked at it, and the first message that was read then.
  struct Hole: Sendable {
    let last: LinkPosition
    let first: LinkPosition
    /// The message that the group would have read at the look.
    let next: LinkPosition
    /// The first position behind the removed messages, if no other reader has read the next one.
    let end: LinkPosition
    /// The positions that are missing between the messages that were read.
    let others: [ClosedRange<LinkPosition>?]
  }

  /// The answer of a group that the reader has joined.
  struct Start: Sendable {
    let position: LinkPosition
    let id: String?
    let generation: Int
  }

  /// The progress towards the next delivery.
  enum Stage: Sendable {
    case beginning
    /// The server answers.
    case open
    /// The latest message is compared with a server whose group was joined.
    case joined(Start)
    /// The server has the latest message.
    case compared
    /// The messages that wait were renewed.
    case renewed
    /// No message of other nodes was claimed.
    case claimed
    case read(Hole)
    /// The group was removed.
    case removed
    /// The latest message is compared, because the group was removed.
    case comparing
    /// Messages were lost, at the end of the stream or elsewhere.
    case lost(isBehind: Bool)
  }

  let stream: String
  let group: String
  let retryAfter: Nanoseconds
  /// The time between two claims, and between two renewals.
  let interval: Nanoseconds
  var stage = Stage.beginning
  /// The time for which the reader waits next.
  var pause: Duration?
  var ready: ArraySlice<LinkDelivery> = []
  var isConnected = false
  var hasLeft = false
  /// The messages that were read and not delivered, the next one last.
  var items: [Item] = []
  /// Messages that were removed before they were handled, the next ones last.
  var lost: [ClosedRange<LinkPosition>?] = []
  /// The message that is in progress.
  var hand: LinkPosition?
  /// The time at which it was delivered.
  var deliveryTime: Nanoseconds = 0
  /// Whether the load has changed since it was taken, and the message in progress.
  var isLoadChanged = false
  var handChange: ReaderLoad.Change?
  /// The latest message that the group had not delivered before.
  var newest: RedisEvents.Place?
  /// The connection over which it was compared.
  var generation: Int?
  /// Whether a loss was reported that the next publisher reports as well.
  var hasReportedLoss = false
  /// Whether the group was lost, and has had no message since.
  var isWithoutMessage = false
  var ahead: ReadAhead
  /// The times of the last reading and renewal.
  var readTime: Nanoseconds = 0
  var renewTime: Nanoseconds = 0
  /// The time of the last claim; `nil` if the next reading begins with one.
  var claimTime: Nanoseconds?
  /// The last known change of the group by readers that gave messages back.
  var released: [UInt8]?

  /// - Parameters:
  ///   - stream: The stream.
  ///   - group: The group.
  ///   - place: The latest message of an earlier reader, if it is known.
  ///   - retryAfter: The time after which other nodes handle a message that is not renewed.
  ///   - pace: The time between two claims; a part of `retryAfter` by default.
  ///   - ahead: The number of messages that are read at once.
  init(
    of stream: String,
    group: String,
    after place: RedisEvents.Place? = nil,
    retryAfter: Duration,
    pace: Duration? = nil,
    ahead: ReadAhead = ReadAhead(limit: 256)
  ) {
    self.stream = stream
    self.group = group
    newest = place
    self.retryAfter = Nanoseconds(retryAfter)
    interval = Nanoseconds(pace ?? min(max(retryAfter / 4, .milliseconds(1)), .seconds(1)))
    self.ahead = ahead
  }

  var place: RedisEvents.Place? { newest }

  var pace: Duration? { .nanoseconds(interval) }

  var isMember: Bool { isConnected && !hasLeft }

  // MARK: - Steps

  mutating func next(_ count: Int, at moment: ReaderMoment) throws -> ReaderStep {
    while ready.isEmpty {
      if let pause = pause.take() { return .wait(atMost: pause) }
      if let command = try advance(at: moment) { return .send(command) }
    }
    return .deliver(following: nil)
  }

  /// Makes a delivery ready, or returns the command that is needed first.
  private mutating func advance(at moment: ReaderMoment) throws -> ReaderCommand? {
    switch stage {
    case .beginning: return begin(at: moment)
    case .open: return .join
    case .compared: return prepare(at: moment)
    case .renewed: return deliver(at: moment)
    case .claimed: return .read(count: ahead.count)
    case .read(let hole): return .range(from: hole.next, count: 1)
    case .lost: return .reset
    case .joined, .comparing:
      if let newest { return .survey(at: newest.position) }
      stage = .lost(isBehind: false)
    case .removed:
      // Each further attempt to read has a pause.
      guard !isWithoutMessage else {
        throw RedisError("NOGROUP The group \(group) was removed again.".utf8)
      }
      isWithoutMessage = true
      // The group was lost, perhaps with its stream.
      stage = .comparing
    }
    return nil
  }

  /// Gives back a message that was neither acknowledged nor rejected, connects, and compares the latest message.
  private mutating func begin(at moment: ReaderMoment) -> ReaderCommand? {
    if hand != nil {
      guard moment.inHand == nil else { return .postpone }
      finish()
    }
    guard isConnected else { return .connect }
    if moment.generation != generation, let newest { return .survey(at: newest.position) }
    stage = .compared
    return nil
  }

  mutating func finish() {
    (hand, handChange, isLoadChanged) = (nil, .ended, true)
  }

  /// Reports removed messages, and drops messages that other nodes may have taken over, because this one stood still.
  private mutating func prepare(at moment: ReaderMoment) -> ReaderCommand? {
    if let range = lost.popLast() {
      report(range)
    } else if !items.isEmpty, moment.time - renewTime > retryAfter / 2 {
      return renewal(at: moment)
    } else {
      stage = .renewed
    }
    return nil
  }

  /// Delivers the next message, or reads some.
  private mutating func deliver(at moment: ReaderMoment) -> ReaderCommand? {
    guard var item = items.popLast() else { return read(at: moment) }
    stage = .beginning
    if item.isAfterLoss {
      item.isAfterLoss = false
      items.append(item)
      if !hasReportedLoss { report(nil) }
      hasReportedLoss = false
      return nil
    }
    hand = item.position
    handChange = .begun(item.position, identity: item.identity)
    (deliveryTime, isLoadChanged) = (moment.time, true)
    ready = [.message(item.message, at: item.position, attempt: item.attempt)]
    return nil
  }

  private mutating func report(_ range: ClosedRange<LinkPosition>?) {
    ready = [.gap(lost: range)]
    stage = .beginning
  }

  /// Reads new messages and those of other nodes.
  private mutating func read(at moment: ReaderMoment) -> ReaderCommand? {
    // A command after the one by which the reader leaves would give it messages that no reader handles.
    guard !hasLeft else {
      (stage, pause) = (.beginning, pace)
      return nil
    }
    // The last ones took so long that other nodes could have handled some.
    if readTime > 0, moment.time - readTime > 100_000_000 { ahead.shrink() }
    if claimTime.map({ moment.time - $0 >= interval }) ?? true { return .claim }
    stage = .claimed
    return nil
  }

  mutating func fail() {
    (stage, pause) = (.beginning, nil)
  }

  // MARK: - Load

  mutating func takeLoad() -> ReaderLoad? {
    guard isLoadChanged else { return nil }
    isLoadChanged = false
    return ReaderLoad(count: items.count + (hand == nil ? 0 : 1), change: handChange.take())
  }

  mutating func giveBack(at moment: ReaderMoment) -> ReaderCommand? {
    guard hand != nil, moment.time - deliveryTime > retryAfter, !items.isEmpty else { return nil }
    let positions = items.reversed().map(\.position)
    (items, isLoadChanged) = ([], true)
    ahead.shrink()
    return .giveBack(positions)
  }

  mutating func renew(at moment: ReaderMoment) -> ReaderCommand? {
    hand != nil || !items.isEmpty ? renewal(at: moment) : nil
  }

  private func renewal(at moment: ReaderMoment) -> ReaderCommand {
    // Otherwise, another node can have handled the messages that are no longer pending.
    let isInTime = moment.time - renewTime < retryAfter / 2
    let positions = items.map(\.position) + (hand.map { [$0] } ?? [])
    return .renew(positions, isInTime: isInTime)
  }

  mutating func leave() -> Bool {
    guard isMember else { return false }
    (hasLeft, items) = (true, [])
    return true
  }
}
