internal import Plexus

/// The reading of a topic by an ephemeral connection: messages arrive on a channel.
struct ChannelReaderState: EventReaderState {
  /// A part of the beginning that is done.
  private enum Beginning: Sendable {
    case connected, subscribed
    /// The end of the stream is known, and the id of its last message.
    case surveyed(LinkPosition, id: String?)
    /// The first message has arrived before the end of the stream was known.
    case early(start: LinkPosition)
    case compared(LinkPosition, id: String?)
  }

  private static let largestBatch = 256

  private let stream: String
  /// The latest message; `nil` before the reading has begun.
  private(set) var place: RedisEvents.Place?
  /// The deliveries that are ready.
  var ready: ArraySlice<LinkDelivery> = []
  private var beginning: Beginning?
  /// The messages that were taken from the channel and not looked at.
  private var taken: ArraySlice<ChannelBuffer.Element> = []
  /// A message behind a gap, which another program can have written.
  private var doubtful: (message: LinkMessage, position: LinkPosition)?
  /// Whether no message has arrived.
  private var isIdle = false
  private var foreignCount = 0

  /// - Parameter stream: The stream of the topic.
  init(of stream: String) {
    self.stream = stream
  }

  mutating func next(_ count: Int, at moment: ReaderMoment) -> ReaderStep {
    guard place != nil else { return .send(nextOfBeginning) }
    sort()
    if doubtful != nil { return .send(.survey(at: nil)) }
    guard ready.isEmpty else { return .deliver(following: nil) }
    if isIdle {
      isIdle = false
      return .wait(atMost: nil)
    }
    return .send(.take(atMost: min(count, Self.largestBatch)))
  }

  /// The next command of a reader that is not connected.
  private var nextOfBeginning: ReaderCommand {
    switch beginning {
    case nil: .connect
    case .connected: .subscribe
    case .subscribed: .survey(at: nil)
    case .surveyed: .peek
    case .early(let start): .survey(at: start)
    case .compared(let start, _): .recall(.ephemeral, at: start)
    }
  }

  mutating func receive(
    _ reply: ReaderReply,
    to command: ReaderCommand,
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws {
    switch (command, reply) {
    case (.take, .elements(let elements)):
      taken = elements[...]
      isIdle = elements.isEmpty
    case (.survey, .survey(let latest, _)) where place != nil:
      judge(latest)
    default:
      try begin(reply, to: command)
    }
  }

  mutating func fail() {
    (beginning, doubtful, isIdle) = (nil, nil, false)
  }

  /// Takes the reply to a command of the beginning.
  private mutating func begin(_ reply: ReaderReply, to command: ReaderCommand) throws {
    switch (beginning, reply) {
    case (nil, .done): beginning = .connected
    case (.connected, .done): beginning = .subscribed
    case (.subscribed, .survey(let latest, let id)): beginning = .surveyed(latest, id: id)
    case (.surveyed(let latest, let id), .elements(let elements)):
      // Messages between the two commands have arrived already.
      guard case .message(_, let first) = elements.first, first <= latest else {
        beginning = .compared(latest, id: id)
        return
      }
      let isFirst = first.number == 0
      beginning = .early(
        start: isFirst ? .start : LinkPosition(epoch: first.epoch, number: first.number - 1)
      )
    case (.early(let start), .survey(_, let id)): beginning = .compared(start, id: id)
    case (.compared(let start, let id), .place(let known)):
      ready = [.connected(at: start)]
      if known?.isLost(latest: start, id: id) == true { ready.append(.gap(lost: nil)) }
      place = RedisEvents.Place(.ephemeral, of: stream, position: start, id: id)
    default: throw TierError.unexpectedReply
    }
  }

  /// Makes messages ready to be delivered, up to one that is behind a gap.
  private mutating func sort() {
    while doubtful == nil, let position = place?.position, let element = taken.popFirst() {
      switch element {
      case .message(let message, let next):
        // A message that was published twice, or before the connection.
        guard next > position else { continue }
        if position.epoch == next.epoch, position.isFollowed(by: next) {
          deliver(message, at: next)
        } else {
          doubtful = (message, next)
        }
      case .foreign(let bytes):
        foreignCount += 1
        let name = "\(position).\(foreignCount)"
        let message = LinkMessage(id: name, type: "", version: 0, origin: "", body: bytes)
        ready.append(.message(message, at: position, attempt: 1))
      }
    }
  }

  /// Delivers the message behind a gap.
  ///
  /// - Parameter latest: The end of the stream, which is behind the message unless another program has written it.
  private mutating func judge(_ latest: LinkPosition) {
    guard let (message, next) = doubtful.take(), let position = place?.position else { return }
    // Another program can write any position, behind which all messages would be missed.
    guard latest >= next else {
      ready.append(.message(message, at: position, attempt: 1))
      return
    }
    // A new epoch on the same connection begins with its first message.
    if next.number > 0 || next.epoch == position.epoch {
      ready.append(.gap(lost: position.positions(before: next)))
    }
    deliver(message, at: next)
  }

  private mutating func deliver(_ message: LinkMessage, at position: LinkPosition) {
    place?.position = position
    place?.id = message.id
    ready.append(.message(message, at: position, attempt: 1))
  }
}
