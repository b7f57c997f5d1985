public import Plexus
internal import PlexusSupport

/// The link of one node of an ``EventMemory``, whose connection can be interrupted.
public final class EventMemoryNode: EventLink {
  /// The error of calls while a node is cut off.
  public struct Unreachable: Error, Hashable, CustomStringConvertible {
    /// A description of the error.
    public var description: String { "The node is cut off from the engine." }
  }

  private let engine: EventMemory
  private let number: Int
  private let losesConfirmations = Locked(false)

  init(_ engine: EventMemory, number: Int) {
    self.engine = engine
    self.number = number
  }

  /// The format of the events.
  public var codec: any LinkCodec { engine.codec }

  // MARK: - Faults

  /// Breaks the connection: streams and calls fail, and new streams wait.
  ///
  /// Messages that the node handles for a group are delivered to other nodes when their time is over.
  public func cutOff() {
    engine.perform { [number] content, now in content.cutOff(number, at: now) }
  }

  /// Restores the connection.
  public func reconnect() {
    engine.perform { [number] content, _ in content.reconnect(number) }
  }

  /// Sets whether the engine's confirmations are lost: the engine then performs the calls, which fail nevertheless.
  ///
  /// - Parameter isLossy: Whether confirmations are lost.
  public func loseConfirmations(_ isLossy: Bool) {
    losesConfirmations.withLock { $0 = isLossy }
  }

  /// Ends the streams of the node; its calls fail.
  public func close() {
    engine.perform { [number] content, now in content.close(number, at: now) }
  }

  // MARK: - Link

  /// Appends a message to a topic.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - topic: The topic.
  /// - Returns: The position of the message.
  /// - Throws: ``Unreachable``.
  public func publish(_ message: LinkMessage, to topic: String) async throws -> LinkPosition {
    try call { content in content.append(message, to: topic) }
  }

  /// Returns the messages of a topic.
  ///
  /// - Parameters:
  ///   - topic: The topic.
  ///   - mode: The messages to deliver.
  /// - Returns: The deliveries.
  public func deliveries(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<LinkDelivery, any Error> {
    let reader = EventMemoryReader(engine, topic, mode, number)
    return AsyncThrowingStream { try await reader.next() }
  }

  /// Marks a message as handled by a group.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  /// - Throws: ``Unreachable``.
  public func acknowledge(
    _ position: LinkPosition,
    of topic: String,
    group: String
  ) async throws {
    try call { content in content.acknowledge(position, of: topic, group: group) }
  }

  /// Moves a message to the dead letters of a group, and acknowledges it.
  ///
  /// - Parameters:
  ///   - position: The position of the message.
  ///   - topic: The topic.
  ///   - group: The group.
  ///   - reason: The reason.
  /// - Throws: ``Unreachable``.
  public func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    because reason: String
  ) async throws {
    let deadLetters = deadLetterTopic(of: topic, group: group)
    try call { content in content.reject(position, of: topic, group: group, to: deadLetters) }
  }

  private func call<Result: Sendable>(
    _ body: (inout EventMemoryState) -> Result
  ) throws -> Result {
    let isLossy = losesConfirmations.withLock(\.self)
    let result = try engine.perform { [number] content, _ in
      guard content.isConnected(number) else { throw Unreachable() }
      return body(&content)
    }
    guard !isLossy else { throw Unreachable() }
    return result
  }
}

/// One stream of deliveries.
final class EventMemoryReader: Sendable {
  private let engine: EventMemory
  private let bell = EventMemoryBell()
  private let id: Int

  init(_ engine: EventMemory, _ topic: String, _ mode: LinkMode, _ node: Int) {
    self.engine = engine
    id = engine.addReader(of: topic, mode, by: node, bell)
  }

  deinit {
    engine.removeReader(id)
  }

  func next() async throws -> LinkDelivery? {
    while !Task.isCancelled {
      switch engine.turn(of: id) {
      case .deliver(let delivery): return delivery
      case .wait(let end): await bell.wait(until: end, engine.time)
      case .interrupted: throw EventMemoryNode.Unreachable()
      case .ended: return nil
      }
    }
    return nil
  }
}

/// A signal that one task waits for.
final class EventMemoryBell: Sendable {
  private struct State: Sendable {
    var isRung = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Locked(State())

  /// Resumes the task that waits, or the next one.
  func ring() {
    let waiting = state.withLock { state in
      state.isRung = state.waiting == nil
      return state.waiting.take()
    }
    waiting?.resume()
  }

  /// Waits until the bell rings, the time is over, or the task is cancelled.
  func wait(until end: Duration?, _ time: ElapsedTime) async {
    let timer = end.map { end in
      Task.detached { [weak self] in
        if (try? await time.sleep(until: end)) != nil { self?.ring() }
      }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          let isOver = state.isRung
          state.isRung = false
          if !isOver { state.waiting = continuation }
          return isOver
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      ring()
    }
    timer?.cancel()
  }
}
