/// What other threads tell the thread of an origin.
final class Mailbox: Sendable {
  enum Message: Sendable {
    /// The handler has answered the request of a connection.
    case respond(connection: Int, OriginResponse, OriginFault?)
    /// A pause of a connection is over.
    case resume(connection: Int)
    /// Serve from now on, or no longer.
    case serve(Bool, CheckedContinuation<Result<Void, OriginError>, Never>)
    /// End everything.
    case stop
  }

  private struct State: Sendable {
    var messages: [Message] = []
    /// What wakes the reader; `nil` if nobody reads any more.
    var pipe: WakePipe?
  }

  private let state: Locked<State>

  /// Creates a mailbox whose reader waits at the given pipe.
  init(pipe: WakePipe) {
    state = Locked(State(pipe: pipe))
  }

  /// Leaves a message, unless nobody reads any more.
  ///
  /// - Returns: Whether it will be read.
  @discardableResult
  func post(_ message: Message) -> Bool {
    state.withLock { state in
      guard let pipe = state.pipe else { return false }
      state.messages.append(message)
      pipe.wake()
      return true
    }
  }

  /// Takes all messages in order.
  func takeAll() -> [Message] {
    state.withLock { state in
      state.pipe?.rest()
      defer { state.messages = [] }
      return state.messages
    }
  }

  /// Takes the last messages, and lets go of the pipe; from now on no message is accepted.
  func close() -> [Message] {
    state.withLock { state in
      defer { state = State() }
      return state.messages
    }
  }
}
