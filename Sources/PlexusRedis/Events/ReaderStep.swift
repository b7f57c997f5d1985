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
}

/// The connection and the time at a step of a reader.
struct ReaderMoment: Sendable {
  /// The number of connections so far.
  var generation = 1
  /// Whether the link was closed.
  var isClosed = false
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
}

/// The reply to a command of a reader.
enum ReaderReply: Sendable {
  case done
  case value(RESPValue)
  /// The end of the stream, and the id of the message, if it is there.
  case survey(latest: LinkPosition, id: String?)
  /// Messages, which may have been read in advance.
  case entries([MessageFormat.Entry], isAhead: Bool)
  case elements([ChannelBuffer.Element])
  case place(RedisEvents.Place?)
}
