/// The commands of a connection that have not been answered, and the bytes that have not been sent.
///
/// Replies come in the order of the commands. A caller that leaves keeps its place, which swallows the reply.
///
/// Invariants:
///
/// - ``places`` holds the commands that are sent or about to be sent, in the order of their bytes.
/// - At most one thread writes at a time; it takes all bytes that wait.
/// - A caller is returned once: with its reply, at its deadline, when it leaves, or when the connection breaks.
struct PipelineState<Caller: Sendable>: Sendable {
  /// Whether commands are accepted.
  enum Phase: Sendable, Hashable {
    /// They wait for the connection.
    case connecting
    /// They are sent.
    case connected
    /// They are refused.
    case disconnected(RedisConnectionError)
  }

  private struct Place: Sendable {
    var caller: Caller?
    let deadline: Nanoseconds
  }

  /// Bytes that one thread has to write.
  struct Turn: Sendable, Hashable {
    let bytes: [UInt8]
    /// The connection to write them to.
    fileprivate let connection: Int
  }

  /// The consequence of a new command.
  enum Admission: Sendable {
    /// The calling thread has to write, and then to call ``PipelineState/written(_:)``.
    case writes(Turn)
    /// Another thread will write the bytes.
    case queued
    case refused(RedisConnectionError)
  }

  private(set) var phase = Phase.connecting
  private var places: [Place?] = []
  /// The number of places at the beginning that are free again.
  private var freeCount = 0
  /// The number of the command in the first place.
  private var first = 0
  private var outbox: [UInt8] = []
  private var isWriting = false
  /// Whether bytes wait until the system takes them.
  private(set) var isPostponed = false
  /// The number of connections that have ended.
  private var connection = 0
  private let outboxLimit: Int
  /// The time from a command to its deadline.
  private let timeLimit: Nanoseconds
  /// The bytes that were sent, and the replies.
  private(set) var traffic = TrafficState()

  init(outboxLimit: Int, timeLimit: Nanoseconds = 0) {
    self.outboxLimit = outboxLimit
    self.timeLimit = timeLimit
  }

  /// The number of commands that have not been answered.
  var count: Int { places.count - freeCount }

  /// The number of bytes that no thread has begun to send.
  var outboxBytes: Int { outbox.count }

  /// The deadline of the oldest command that has not been answered, whether a caller still waits or not.
  var oldestDeadline: Nanoseconds? {
    freeCount < places.count ? places[freeCount]?.deadline : nil
  }

  /// Returns whether further commands would wait behind one that was not answered in time.
  ///
  /// - Parameters:
  ///   - now: The present time.
  ///   - silence: The time since the server has sent anything. A server that sends a large reply is not late.
  ///   - limit: The longest time for which a server that answers is silent.
  /// - Returns: Whether a command is late, and the server silent.
  func isOverdue(at now: Nanoseconds, silence: Nanoseconds, limit: Nanoseconds) -> Bool {
    silence >= limit && oldestDeadline.map { $0 <= now } ?? false
  }

  /// Adds a command.
  ///
  /// - Parameters:
  ///   - bytes: The encoded command.
  ///   - deadline: The time at which the caller gives up.
  ///   - caller: Returns the caller for the number of its command; called if the command is not refused.
  /// - Returns: The consequence.
  mutating func add(
    _ bytes: [UInt8],
    deadline: Nanoseconds,
    caller: (_ number: Int) -> Caller
  ) -> Admission {
    if case .disconnected(let error) = phase { return .refused(error) }
    guard bytes.count <= outboxLimit - outbox.count else {
      return .refused(
        .outboxFull(bytes: bytes.count, waiting: outbox.count, limit: outboxLimit)
      )
    }
    places.append(Place(caller: caller(first + places.count), deadline: deadline))
    guard phase == .connected, !isWriting else {
      outbox += bytes
      return .queued
    }
    isWriting = true
    return .writes(Turn(bytes: bytes, connection: connection))
  }

  /// Adds the bytes that wait to a turn that has not begun.
  mutating func extend(_ turn: Turn) -> Turn {
    guard !outbox.isEmpty else { return turn }
    defer { outbox = [] }
    return Turn(bytes: turn.bytes + outbox, connection: turn.connection)
  }

  /// Ends a turn whose bytes are sent.
  ///
  /// - Returns: The next turn of the same thread; `nil` if it is done.
  mutating func written(_ turn: Turn) -> Turn? {
    traffic.bytesOut += turn.bytes.count
    guard turn.connection == connection else { return nil }
    return nextTurn()
  }

  /// Suspends writing, because the system takes no more bytes: all commands are queued until ``resume()``.
  ///
  /// - Parameters:
  ///   - turn: The turn.
  ///   - count: The number of its bytes that were sent.
  /// - Returns: Whether the connection still exists.
  mutating func postpone(_ turn: Turn, sent count: Int) -> Bool {
    traffic.bytesOut += count
    guard turn.connection == connection else { return false }
    outbox.insert(contentsOf: turn.bytes[count...], at: 0)
    isPostponed = true
    return true
  }

  /// Resumes writing, because the system takes bytes again.
  ///
  /// - Returns: The bytes that the calling thread has to write.
  mutating func resume() -> Turn? {
    guard isPostponed else { return nil }
    isPostponed = false
    return nextTurn()
  }

  private mutating func nextTurn() -> Turn? {
    isWriting = !outbox.isEmpty
    guard isWriting else { return nil }
    defer { outbox = [] }
    return Turn(bytes: outbox, connection: connection)
  }

  /// Takes the caller whose reply has come.
  ///
  /// - Parameter now: The present time.
  /// - Returns: `nil` if no command was waiting for a reply; otherwise the caller, if it has not left.
  mutating func takeReply(at now: Nanoseconds = 0) -> Caller?? {
    guard freeCount < places.count else { return nil }
    if let deadline = places[freeCount]?.deadline {
      traffic.answer(after: now - deadline + timeLimit)
    }
    let caller = places[freeCount]?.caller
    places[freeCount] = nil
    freeCount += 1
    if freeCount == places.count || freeCount >= 1024 && freeCount > places.count / 2 {
      places.removeFirst(freeCount)
      first += freeCount
      freeCount = 0
    }
    return .some(caller)
  }

  /// Removes a caller that no longer waits.
  ///
  /// - Returns: The caller, if it was waiting.
  mutating func leave(_ number: Int) -> Caller? {
    let index = number - first
    guard places.indices.contains(index) else { return nil }
    return places[index]?.caller.take()
  }

  /// Removes the callers whose deadline has passed; all commands have the same time.
  mutating func expire(at now: Nanoseconds) -> [Caller] {
    var expired: [Caller] = []
    var index = freeCount
    while index < places.count, let place = places[index], place.deadline <= now {
      if let caller = places[index]?.caller.take() { expired.append(caller) }
      index += 1
    }
    return expired
  }

  /// The earliest deadline of a caller that waits.
  var nextDeadline: Nanoseconds? {
    places[freeCount...].first { $0?.caller != nil }??.deadline
  }

  /// Opens the pipeline for a new connection.
  ///
  /// - Returns: The waiting bytes, which the calling thread has to write.
  mutating func connect() -> Turn? {
    phase = .connected
    return nextTurn()
  }

  /// Ends the connection, which broke or could not be established.
  ///
  /// - Parameter error: The error of commands from now on; `nil` if they wait for the next connection.
  /// - Returns: The callers, which have to be resumed.
  mutating func disconnect(_ error: RedisConnectionError?) -> [Caller] {
    phase = error.map { .disconnected($0) } ?? .connecting
    let callers = places[freeCount...].compactMap { $0?.caller }
    first += places.count
    places = []
    freeCount = 0
    outbox = []
    isWriting = false
    isPostponed = false
    connection += 1
    return callers
  }
}
