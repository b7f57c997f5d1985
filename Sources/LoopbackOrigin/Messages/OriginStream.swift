internal import PlexusSupport

/// A response body that is written while the client reads it, such as server-sent events.
///
/// A response with a stream has no length: the end of the connection ends it. The origin holds at most one piece
/// that the client has not read, so a slow client never makes a queue grow.
///
/// ```swift
/// let origin = try LoopbackOrigin()
/// origin.route("/news") { _ in
///   let stream = OriginStream()
///   stream.write(Array("data: hello\n\n".utf8))
///   return OriginResponse(stream: stream, contentType: "text/event-stream")
/// }
/// ```
public final class OriginStream: Sendable, Hashable {
  /// The next step of the connection.
  enum Step: Equatable {
    case send([UInt8])
    case wait
    case end
  }

  private struct State: Sendable {
    var pending: [UInt8]?
    /// Whether a piece has not left the origin.
    var isBusy = false
    var isFinished = false
    var hasEnded = false
    var wake: (@Sendable () -> Void)?
    var onEnd: (@Sendable () -> Void)?
  }

  private let state: Locked<State>

  /// Creates a stream.
  ///
  /// - Parameter onEnd: A closure that is called once when the stream has ended: the client has disconnected, the stream
  ///   was finished, or the origin was stopped. It must return quickly.
  public init(onEnd: @escaping @Sendable () -> Void = {}) {
    state = Locked(State(onEnd: onEnd))
  }

  deinit {
    close()
  }

  /// Whether a piece can be written: the previous one was passed to the system, and the stream has not ended.
  public var isWritable: Bool {
    state.withLock { !$0.isBusy && !$0.isFinished && !$0.hasEnded }
  }

  /// Writes a piece, unless the previous one still waits for the client.
  ///
  /// - Parameter bytes: The piece.
  /// - Returns: Whether the piece was accepted.
  @discardableResult
  public func write(_ bytes: [UInt8]) -> Bool {
    let (isAccepted, wake) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
      guard !state.isBusy, !state.isFinished, !state.hasEnded else { return (false, nil) }
      state.pending = bytes
      state.isBusy = true
      return (true, state.wake)
    }
    wake?()
    return isAccepted
  }

  /// Ends the response after the last piece.
  public func finish() {
    let wake = state.withLock { state in
      state.isFinished = true
      return state.wake
    }
    wake?()
  }

  /// Begins to report pieces to a connection.
  func attach(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
  }

  /// Returns the next step of the connection.
  func next() -> Step {
    state.withLock { state in
      if let bytes = state.pending.take() { return .send(bytes) }
      return state.isFinished ? .end : .wait
    }
  }

  /// Records that the last piece was passed to the system.
  func noteSent() {
    state.withLock { $0.isBusy = $0.pending != nil }
  }

  /// Ends the stream; its connection has ended.
  func close() {
    let released = state.withLock { state in
      state.hasEnded = true
      defer { (state.pending, state.wake, state.onEnd) = (nil, nil, nil) }
      return (state.wake, state.onEnd)
    }
    released.1?()
  }

  /// Returns whether two references are to the same stream.
  public static func == (one: OriginStream, other: OriginStream) -> Bool { one === other }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}
