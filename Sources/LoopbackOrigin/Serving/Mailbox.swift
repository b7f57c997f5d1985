internal import PlexusSupport

/// A queue of messages for the thread of an origin.
final class Mailbox: Sendable {
  enum Message: Sendable {
    /// The handler has responded to the request of a connection.
    case respond(connection: Int, OriginResponse, OriginFault?)
    /// A pause of a connection has ended.
    case resume(connection: Int)
    /// A stream of a connection has a new piece, or is finished.
    case stream(connection: Int)
    /// A connection has waited too long for a request.
    case expire(connection: Int, exchange: Int)
    /// Go online or offline.
    case serve(Bool, CheckedContinuation<Result<Void, OriginError>, Never>)
    /// Stop the loop.
    case stop
  }

  private struct State: Sendable {
    var messages: [Message] = []
    /// The pipe that wakes the reader, or `nil` if the mailbox is closed.
    var pipe: WakePipe?
  }

  private let state: Locked<State>

  /// Creates a mailbox whose reader polls a pipe.
  init(pipe: WakePipe) {
    state = Locked(State(pipe: pipe))
  }

  /// Adds a message unless the mailbox is closed.
  ///
  /// - Returns: Whether the message was added.
  @discardableResult
  func post(_ message: Message) -> Bool {
    state.withLock { state in
      guard let pipe = state.pipe else { return false }
      state.messages.append(message)
      pipe.wake()
      return true
    }
  }

  /// Removes and returns all messages in order.
  func takeAll() -> [Message] {
    state.withLock { state in
      state.pipe?.rest()
      defer { state.messages = [] }
      return state.messages
    }
  }

  /// Closes the mailbox and returns the remaining messages.
  func close() -> [Message] {
    state.withLock { state in
      defer { state = State() }
      return state.messages
    }
  }
}
