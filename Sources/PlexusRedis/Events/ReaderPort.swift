internal import Plexus
internal import PlexusSupport

/// The side of a reader to its link: its registration, and the commands that it sends.
struct ReaderPort: Sendable {
  let events: RedisEvents
  let names: TopicNames
  let id: UInt64
  let bell = Bell()
  /// The messages of the channel; `nil` for a reader of the stream.
  let buffer: ChannelBuffer?

  /// Registers a reader.
  ///
  /// - Parameters:
  ///   - events: The link.
  ///   - names: The names of the topic.
  ///   - bytes: The limit for messages of the channel; `nil` for a reader of the stream.
  init(_ events: RedisEvents, _ names: TopicNames, buffering bytes: Int? = nil) {
    self.events = events
    self.names = names
    id = events.makeReaderID()
    buffer = bytes.map { [bell] in ChannelBuffer(limit: $0, bell) }
    events.add(bell, for: names.stream, id)
  }

  /// Ends the registration.
  func close() {
    events.removeBell(for: names.stream, id)
    if buffer != nil { events.removeBuffer(for: names.channel, id) }
  }

  /// The connection and the time at a step of the reader.
  var moment: ReaderMoment {
    events.state.withLock { ReaderMoment(generation: $0.generation, isClosed: $0.isClosed) }
  }

  /// Carries out a command.
  func perform(_ command: ReaderCommand) async throws -> ReaderReply {
    switch command {
    case .connect:
      try await events.waitForConnection(bell)
      return .done
    case .survey(let position):
      let (latest, id) = try await events.survey(names.stream, at: position)
      return .survey(latest: latest, id: id)
    case .range(let start, let count):
      let entries = try await events.range(names.stream, from: start, count: count)
      return .entries(entries, isAhead: false)
    case .resume(let position):
      let arguments: [RedisCommand.Argument] = [
        .text("\(position)"), .number(Int64(events.largestEntry)),
      ]
      return .value(try await events.run(TopicScripts.resume, [names.stream], arguments))
    case .subscribe:
      if let buffer { events.add(buffer, for: names.channel, id) }
      _ = try await events.send(RedisCommand("SUBSCRIBE", [.text(names.channel)]))
      return .done
    case .peek:
      return .elements(buffer?.first.map { [$0] } ?? [])
    case .take(let count):
      return .elements(try buffer?.take(atMost: count) ?? [])
    case .recall(let reading, let position):
      return .place(events.recall(reading, of: names.stream, at: position))
    }
  }
}
