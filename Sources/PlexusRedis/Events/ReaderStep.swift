internal import Plexus

/// The decisions of a reader of a topic, without the connection: it gets replies and times, and returns commands and
/// deliveries.
///
/// An ``EventReader`` asks for the next step, carries it out, and gives the reply back, until deliveries are ready.
protocol EventReaderState: Sendable {
  /// The deliveries that are ready.
  var ready: ArraySlice<LinkDelivery> { get set }
  /// The latest message, by which the next reader recognizes a server with old data.
  var place: RedisEvents.Place? { get }

  /// Returns the next step.
  ///
  /// - Parameters:
  ///   - count: The number of deliveries that are taken together at most.
  ///   - moment: The connection and the time.
  /// - Returns: The step.
  /// - Throws: An error that ends the reading.
  mutating func next(_ count: Int, at moment: ReaderMoment) throws -> ReaderStep

  /// Takes the reply to a command.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - command: The command.
  ///   - sent: The moment before the command was sent.
  ///   - moment: The moment after the reply: of another connection, if the reply can be that of another server.
  /// - Throws: An error if the reply is none to this command.
  mutating func receive(
    _ reply: ReaderReply,
    to command: ReaderCommand,
    sent: ReaderMoment,
    at moment: ReaderMoment
  ) throws

  /// Begins again with the next step, because a command has failed.
  mutating func fail()

  // MARK: - Groups

  /// The time between two renewals; `nil` for a reader without a group.
  var pace: Duration? { get }
  /// Whether the server can have messages of a group for the reader.
  var isMember: Bool { get }

  /// Returns the messages that the reader has, if they have changed since.
  mutating func takeLoad() -> ReaderLoad?

  /// Returns the command that gives back the messages that were read ahead, because the one in progress takes long.
  ///
  /// Otherwise, a handler that hangs would keep them from the other nodes.
  mutating func giveBack(at moment: ReaderMoment) -> ReaderCommand?

  /// Returns the command by which the messages are kept from the other nodes; `nil` if there are none.
  mutating func renew(at moment: ReaderMoment) -> ReaderCommand?

  /// Ends the membership of the group.
  ///
  /// - Returns: Whether the reader was a member, so that its messages have to be released.
  mutating func leave() -> Bool
}

extension EventReaderState {
  var pace: Duration? { nil }
  var isMember: Bool { false }

  mutating func takeLoad() -> ReaderLoad? { nil }

  mutating func giveBack(at moment: ReaderMoment) -> ReaderCommand? { nil }

  mutating func renew(at moment: ReaderMoment) -> ReaderCommand? { nil }

  mutating func leave() -> Bool { false }
}

/// The connection and the time at a step of a reader.
struct ReaderMoment: Sendable {
  /// The number of connections so far.
  var generation = 1
  /// Whether the link was closed.
  var isClosed = false
  var time: Nanoseconds = 0
  /// The message in progress, unless it was acknowledged or rejected.
  var inHand: LinkPosition?
}

/// The messages of a group that a reader has received and not finished.
struct ReaderLoad: Sendable {
  /// A change of the message in progress.
  enum Change: Hashable, Sendable {
    /// A message is delivered, with its id as the engine has it.
    case begun(LinkPosition, identity: [UInt8])
    case ended
  }

  let count: Int
  /// The change of the message in progress since the last load, if there is one.
  let change: Change?
}

/// The next step of a reader.
enum ReaderStep: Hashable, Sendable {
  /// Delivers what is ready; a command that is likely to follow is sent meanwhile.
  case deliver(following: ReaderCommand?)
  case send(ReaderCommand)
  /// Waits for a change of the stream or of the connection.
  case wait(atMost: Duration?)
}

/// A command of a reader, to the server or to the link.
enum ReaderCommand: Hashable, Sendable {
  /// Waits until the server answers.
  case connect
  /// Looks at the end of the stream, and at a message, which is the last one without a position.
  case survey(at: LinkPosition?)
  /// Reads messages from a position on.
  case range(from: LinkPosition, count: Int)
  /// Compares a message, and reads the next one, which can be too large for a reply.
  case resume(after: LinkPosition)
  case subscribe
  /// Looks at the first message of the channel, which stays.
  case peek
  /// Takes messages of the channel.
  case take(atMost: Int)
  /// Looks up the latest message of an earlier reader.
  case recall(RedisEvents.Place.Reading, at: LinkPosition)
  /// Creates the group, unless there is one.
  case join
  /// Takes over messages of the group that were not answered in time.
  case claim
  /// Looks at the group, and reads its next messages.
  case read(count: Int)
  /// Keeps messages from the other nodes; if it is in time, also messages that are no longer pending.
  case renew([LinkPosition], isInTime: Bool)
  /// Gives back messages that were read ahead.
  case giveBack([LinkPosition])
  /// Gives back the message in progress for its next attempt.
  case postpone
  /// Gives back all messages, because the reader begins again.
  case reset
}

/// The reply to a command of a reader.
enum ReaderReply: Sendable {
  case done
  case value(RESPValue)
  case results([Result<RESPValue, any Error>])
  /// The end of the stream, and the id of the message, if it is there.
  case survey(latest: LinkPosition, id: String?)
  /// Messages, which may have been read in advance.
  case entries([MessageFormat.Entry], isAhead: Bool)
  case elements([ChannelBuffer.Element])
  case place(RedisEvents.Place?)
}
