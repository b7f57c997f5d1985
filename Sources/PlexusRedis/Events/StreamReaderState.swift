internal import Plexus

/// The reading of a topic by a node that gets every message.
///
/// A server that was restarted with old data can give positions again, and messages can be removed before they are read.
/// The messages after the own position are therefore read together with the one at it: if this is the one that was read,
/// nothing is missing. Otherwise, a script compares.
struct StreamReaderState: EventReaderState {
  private let stream: String
  /// The latest message; `nil` before the end of the stream is known, if the reading begins there.
  private(set) var place: RedisEvents.Place?
  /// The deliveries that are ready.
  var ready: ArraySlice<LinkDelivery> = []
  /// Whether the server has answered before the first delivery.
  private var isOpen = false
  private var isConnected = false
  /// The connection over which the place was compared.
  private var generation: Int?
  /// Whether the latest message is known to be small enough to be read again with the ones after it.
  private var isSmall = false
  /// Whether the message at the place was another one, or was missing.
  private var isDoubtful = false
  /// Whether everything was read.
  private var isIdle = false
  /// Whether a loss of the end of the stream was reported that the next publisher reports as well.
  private var hasReportedLoss = false
  private var ahead = ReadAhead(limit: 1_024)
  /// The reading of the messages behind the ones that are ready, which can arrive while these are handled.
  private var following: ReaderCommand?

  /// - Parameters:
  ///   - stream: The stream.
  ///   - place: The message after which the reading begins; `nil` for the last one.
  init(of stream: String, after place: RedisEvents.Place?) {
    self.stream = stream
    self.place = place
  }

  mutating func next(_ count: Int, at moment: ReaderMoment) -> ReaderStep {
    guard ready.isEmpty else { return .deliver(following: following.take()) }
    guard isConnected, let position = place?.position else {
      return .send(isOpen ? .survey(at: nil) : .connect)
    }
    if isIdle {
      isIdle = false
      // The reading of the stream makes the server announce its next change.
      return .wait(atMost: nil)
    }
    guard moment.generation == generation, isSmall, !isDoubtful else {
      return .send(.resume(after: position))
    }
    return .send(.range(from: position, count: ahead.count + 1))
  }

  mutating func receive(
    _ reply: ReaderReply,
    to command: ReaderCommand,
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws {
    switch (command, reply) {
    case (.connect, .done):
      isOpen = true
      if let position = place?.position { connect(at: position) }
    case (.survey, .survey(let latest, let id)):
      place = RedisEvents.Place(.everyNode, of: stream, position: latest, id: id)
      connect(at: latest)
    // The reply can be that of another server.
    case (.range, .entries), (.resume, .value):
      guard sent.generation == moment.generation, let place else { return }
      if case .entries(let entries, let isAhead) = reply {
        // Meanwhile there can be some, or the server can have recovered.
        if !isAhead || entries.count > 1 { read(entries, after: place) }
      } else if case .value(let value) = reply {
        try resume(value, after: place, over: moment.generation)
      }
    default: throw TierError.unexpectedReply
    }
  }

  mutating func fail() {
    (isOpen, isIdle, isDoubtful) = (isConnected, false, false)
  }

  private mutating func connect(at position: LinkPosition) {
    isConnected = true
    ready = [.connected(at: position)]
  }

  /// Takes the message at the place and the ones after it.
  private mutating func read(_ entries: [MessageFormat.Entry], after place: RedisEvents.Place) {
    guard let first = entries.first, first.position == place.position,
      first.message.id == place.id
    else {
      isDoubtful = true
      return
    }
    let new = entries.dropFirst()
    guard let latest = new.last else {
      isIdle = true
      return
    }
    let isFull = new.count >= ahead.count
    ahead.note(messages: new.count, bytes: new.reduce(0) { $0 + $1.size })
    deliver(new)
    if isFull, isSmall { following = .range(from: latest.position, count: ahead.count + 1) }
  }

  /// Takes the comparison of the place and the next message, which can be too large for a reply.
  private mutating func resume(
    _ reply: RESPValue,
    after place: RedisEvents.Place,
    over current: Int
  ) throws {
    guard let parts = reply.elements, parts.count >= 2, let latest = LinkPosition(parts[0]) else {
      throw TierError.unexpectedReply
    }
    // Only the loss that was reported over the connection before is the one that a publisher reports as well.
    if generation != current { hasReportedLoss = false }
    (generation, isDoubtful) = (current, false)
    let id = RedisEvents.id(of: parts[1], at: place.position)
    guard !place.isLost(latest: latest, id: id) else {
      self.place?.id = id
      return lose(latest)
    }
    if let id { self.place?.id = id }
    guard parts.count == 3 else {
      if latest > place.position { return skip(to: latest, from: place.position) }
      isIdle = true
      return
    }
    guard let next = parts[2].elements, next.count == 3,
      let entry = MessageFormat.Entry(
        id: next[0],
        fields: next[1],
        isTooLarge: next[2].integer == 1
      )
    else { throw TierError.unexpectedReply }
    // Between positions of different epochs, only messages that were removed tell that there were any.
    let isAfterGap =
      id == nil && !place.position.isFollowed(by: entry.position)
      && place.position.positions(before: entry.position) == nil
    deliver([entry], after: isAfterGap ? .gap(lost: nil) : nil)
    if next[2].integer == 1 { isSmall = false }
  }

  /// Makes messages ready to be delivered.
  private mutating func deliver(
    _ entries: some Collection<MessageFormat.Entry>,
    after gap: LinkDelivery? = nil
  ) {
    var deliveries: [LinkDelivery] = []
    deliveries.reserveCapacity(entries.count + 1)
    if let gap { deliveries.append(gap) }
    for entry in entries {
      if let lost = place?.position.positions(before: entry.position) {
        deliveries.append(.gap(lost: lost))
      }
      if entry.isAfterLoss {
        if !hasReportedLoss, deliveries.last != .gap(lost: nil) {
          deliveries.append(.gap(lost: nil))
        }
        hasReportedLoss = false
      }
      deliveries.append(.message(entry.message, at: entry.position, attempt: 1))
      place?.position = entry.position
      place?.id = entry.message.id
      isSmall = entry.size <= ReadAhead.targetBytes
    }
    ready = deliveries[...]
  }

  /// Reports that all messages after a position were removed, and continues at the end of the stream.
  private mutating func skip(to latest: LinkPosition, from position: LinkPosition) {
    let end = LinkPosition(epoch: latest.epoch, number: latest.number &+ 1)
    ready = [.gap(lost: position.positions(before: end))]
    (place, isSmall) = (RedisEvents.Place(.everyNode, of: stream, position: latest), false)
  }

  /// Reports that the server has lost messages, and continues behind the ones that were read, or at its end.
  private mutating func lose(_ latest: LinkPosition) {
    guard let position = place?.position else { return }
    ready = [.gap(lost: nil)]
    hasReportedLoss = latest < position
    guard hasReportedLoss else { return }
    (place, isSmall) = (RedisEvents.Place(.everyNode, of: stream, position: latest), false)
    ready = [.gap(lost: nil), .connected(at: latest)]
  }
}
