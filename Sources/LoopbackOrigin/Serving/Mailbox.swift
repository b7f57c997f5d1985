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
    var isClosed = false
  }

  let pipe: WakePipe
  private let state = Locked(State())

  init() throws(OriginError) {
    pipe = try WakePipe()
  }

  /// Leaves a message, unless nobody reads any more.
  ///
  /// - Returns: Whether it will be read.
  @discardableResult
  func post(_ message: Message) -> Bool {
    let isOpen = state.withLock { state in
      if !state.isClosed { state.messages.append(message) }
      return !state.isClosed
    }
    if isOpen { pipe.wake() }
    return isOpen
  }

  /// Takes all messages in order.
  func takeAll() -> [Message] {
    pipe.rest()
    return state.withLock { state in
      defer { state.messages = [] }
      return state.messages
    }
  }

  /// Takes the last messages; from now on none is accepted.
  func close() -> [Message] {
    state.withLock { state in
      state.isClosed = true
      defer { state.messages = [] }
      return state.messages
    }
  }
}
