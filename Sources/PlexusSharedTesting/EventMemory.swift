public import Plexus
internal import PlexusSupport

/// An in-memory engine that carries events between several nodes of one process, for tests of connected buses.
///
/// Each node stands for a process: connect one bus with each.
///
/// ```swift
/// import Plexus
/// import PlexusSharedTesting
///
/// struct Ping: Event, Codable {
///   let number: Int
/// }
///
/// let engine = EventMemory()
/// let (here, there) = (EventBus(), EventBus())
/// let pings = there.subscribe(to: Ping.self)
/// let reports = there.subscribe(to: LinkReport.self)
/// let tokens = [
///   here.connect(Ping.self, as: "pings", over: engine.node(), .publishOnly),
///   there.connect(Ping.self, as: "pings", over: engine.node(), .everyNode()),
/// ]
/// // Once the connection is made, nothing is missed.
/// for await _ in reports { break }
///
/// try await here.publish(Ping(number: 7))
/// for await ping in pings {
///   print(ping.number)  // Prints "7"
///   break
/// }
/// ```
///
/// With a manual clock, the time until a message is delivered again ends by the clock.
public final class EventMemory: Sendable {
  private struct State: Sendable {
    var content = EventMemoryState()
    var bells: [Int: EventMemoryBell] = [:]
  }

  let codec: any LinkCodec
  let time: ElapsedTime
  private let state = Locked(State())

  /// Creates an engine without messages.
  ///
  /// - Parameters:
  ///   - clock: The clock of the engine.
  ///   - codec: The format of the events.
  public init(
    clock: any Clock<Duration> = ContinuousClock(),
    codec: any LinkCodec = JSONLinkCodec()
  ) {
    self.codec = codec
    time = ElapsedTime(clock)
  }

  /// Returns the link of another node, which is connected.
  public func node() -> EventMemoryNode {
    EventMemoryNode(self, number: state.withLock { $0.content.addNode() })
  }

  /// Returns the messages that a topic has, oldest first.
  ///
  /// - Parameter topic: The topic.
  /// - Returns: The messages.
  public func messages(of topic: String) -> [LinkMessage] {
    state.withLock { $0.content.messages(of: topic) }
  }

  // MARK: - Faults

  /// Appends a message that no node has published.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - topic: The topic.
  public func insert(_ message: LinkMessage, into topic: String) {
    perform { content, _ in _ = content.append(message, to: topic) }
  }

  /// Appends the latest message of a topic once more, as a message that was sent twice.
  ///
  /// - Parameter topic: The topic.
  public func duplicateLatest(of topic: String) {
    perform { content, _ in
      if let message = content.messages(of: topic).last { _ = content.append(message, to: topic) }
    }
  }

  /// Removes the oldest messages of a topic.
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - count: The number of messages that stay.
  public func trim(_ topic: String, keeping count: Int = 0) {
    perform { content, _ in content.trim(topic, keeping: count) }
  }

  /// Loses all messages and groups, as an engine does that restarts empty.
  public func lose() {
    perform { content, _ in content.lose() }
  }

  // MARK: - For nodes

  /// Performs a change, and wakes the readers.
  @discardableResult
  func perform<Result: Sendable>(
    _ body: (inout EventMemoryState, Duration) throws -> Result
  ) rethrows -> Result {
    let now = time.now
    let (result, bells) = try state.withLock { state in
      (try body(&state.content, now), state.bells)
    }
    // In one order, so that tests are deterministic.
    for (_, bell) in bells.sorted(by: { $0.key < $1.key }) { bell.ring() }
    return result
  }

  /// Adds a reader.
  ///
  /// - Returns: Its number.
  func addReader(
    of topic: String,
    _ mode: LinkMode,
    by node: Int,
    _ bell: EventMemoryBell
  ) -> Int {
    state.withLock { state in
      let id = state.content.addReader(of: topic, mode, by: node)
      state.bells[id] = bell
      return id
    }
  }

  func removeReader(_ id: Int) {
    let bell = state.withLock { $0.bells.removeValue(forKey: id) }
    withExtendedLifetime(bell) {}
    perform { content, now in content.removeReader(id, at: now) }
  }

  /// Returns the next step of a reader.
  func turn(of id: Int) -> EventMemoryState.Turn {
    let now = time.now
    return state.withLock { $0.content.turn(of: id, at: now) }
  }
}
