import Plexus

@testable import PlexusRedis

/// A reader without a server, whose commands a test of its state answers.
struct ReaderStateTrial<State: EventReaderState> {
  var state: State
  var moment = ReaderMoment()

  init(_ state: State) {
    self.state = state
  }

  /// Returns the next step.
  mutating func step(_ count: Int = .max) throws -> ReaderStep {
    try state.next(count, at: moment)
  }

  /// Answers the next command, optionally over another connection.
  ///
  /// - Returns: The command; `nil` if the reader sends none.
  @discardableResult
  mutating func answer(
    _ reply: ReaderReply,
    over generation: Int? = nil
  ) throws -> ReaderCommand? {
    let sent = moment
    guard case .send(let command) = try step() else { return nil }
    moment.generation = generation ?? moment.generation
    try state.receive(reply, to: command, sent: sent, at: moment)
    return command
  }

  /// Returns the deliveries that are ready, as texts.
  mutating func deliveries() throws -> [String] {
    guard case .deliver = try step() else { return [] }
    defer { state.ready = [] }
    return state.ready.map(Self.text)
  }

  private static func text(_ delivery: LinkDelivery) -> String {
    switch delivery {
    case .connected(let position): "connected \(position)"
    case .gap(let lost): "gap \(lost.map { "\($0.lowerBound) \($0.upperBound)" } ?? "unknown")"
    case .message(let message, let position, let attempt):
      attempt == 1 ? "\(message.id) at \(position)" : "\(message.id) at \(position), \(attempt)"
    }
  }
}

extension RESPValue {
  static func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  /// The fields of a message of a topic.
  static func fields(_ id: String, body: [UInt8] = [1], isAfterLoss: Bool = false) -> RESPValue {
    let loss: [RESPValue] = isAfterLoss ? [.text("l"), .text("1")] : []
    return .array([.text("h"), .text("\(id)\n1\no\nt"), .text("d"), .string(body)] + loss)
  }

  /// A message of a topic, as the server has it.
  static func entry(
    _ position: String,
    _ id: String,
    body: [UInt8] = [1],
    isAfterLoss: Bool = false
  ) -> RESPValue {
    .array([.text(position), .fields(id, body: body, isAfterLoss: isAfterLoss)])
  }
}

extension LinkPosition {
  /// A position in the first epoch.
  static func at(_ number: UInt64) -> LinkPosition { LinkPosition(epoch: 1, number: number) }
}
