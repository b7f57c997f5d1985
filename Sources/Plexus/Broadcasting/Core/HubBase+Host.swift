// The elements of a host, which has an order of its own in front of the hub: it sends them to all subscribers, or to one
// of them alone.

internal import Synchronization

extension HubBase {
  /// The number of subscribers that an element has reached.
  @usableFromInline
  struct Reach: Sendable {
    /// The number of subscribers that get it.
    @usableFromInline var notified = 0
    /// The number of subscribers that had room for it.
    @usableFromInline var handled = 0

    @inlinable
    init(notified: Int = 0, handled: Int = 0) {
      self.notified = notified
      self.handled = handled
    }
  }

  /// Appends an element for all readers, or to the buffer of one of them; called under the lock of the hub.
  ///
  /// Only a subscriber of the host knows the type of the elements at compile time, and brings the closure along.
  @usableFromInline
  typealias Put =
    @Sendable (HandlerQueue.Item, Buffer?, inout State, inout HubEffects) -> Reach

  /// Sends an element to all subscribers, unless elements of the host wait.
  ///
  /// - Parameter box: The element.
  /// - Returns: Whether it was sent.
  @usableFromInline
  final func sendUnlessHeld(_ box: AnyBox) -> Bool {
    var effects = HubEffects()
    let isSent = state.withLock { state in
      guard !isHeld.load(ordering: .relaxed) else { return false }
      _ = Self.send(HandlerQueue.Item(box: box), &state, &effects)
      return true
    }
    if isSent { effects.perform() }
    return isSent
  }

  /// Sends an element to all subscribers that it is for; can be called under the lock of the host.
  ///
  /// - Parameters:
  ///   - item: The element, its number and the report of its handlers.
  ///   - effects: Receives the work that remains.
  /// - Returns: The number of readers that it has reached.
  final func send(_ item: HandlerQueue.Item, _ effects: inout HubEffects) -> Reach {
    state.withLock { state in
      item.report?.begin(sequence: state.sequence)
      return Self.send(item, &state, &effects)
    }
  }

  @inline(__always)
  private static func send(
    _ item: consuming HandlerQueue.Item,
    _ state: inout State,
    _ effects: inout HubEffects
  ) -> Reach {
    var reach = Reach()
    guard state.subscriberCount > 0 else { return reach }
    item.sequence = state.sequence
    if let put = state.put, !state.isFinished { reach = put(item, nil, &state, &effects) }
    if let handlers = state.handlers { handlers.enqueue(item, &effects) }
    state.sequence &+= 1
    state.unparkAll(&effects)
    return reach
  }

  /// Sends an element to one reader; can be called under the lock of the host.
  ///
  /// - Returns: Whether the reader had room for it, and the sequence number of the next element for all readers.
  final func send(
    _ box: AnyBox,
    to buffer: Buffer,
    _ effects: inout HubEffects
  ) -> (isAccepted: Bool, sequence: Int) {
    state.withLock { state in
      let sequence = state.sequence
      // Otherwise the subscription has ended, and is about to leave the host.
      guard buffer.index >= 0, !state.isFinished, let put = state.put else {
        return (true, sequence)
      }
      return (put(HandlerQueue.Item(box: box), buffer, &state, &effects).handled > 0, sequence)
    }
  }

  /// The queues of the handlers.
  final var queues: ContiguousArray<HandlerQueue> {
    state.withLock { $0.handlers?.queues ?? [] }
  }

  /// Ends the handlers after the elements sent so far; called with no lock held.
  final func endHandlers() {
    let (handlers, last) = state.withLock { ($0.handlers.take(), $0.last) }
    handlers?.close(with: last)
  }
}

extension BroadcastHub {
  /// Registers a subscriber that the host can send elements of its own.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that have not been read.
  /// - Returns: The subscription; dropping it ends it.
  @inlinable
  func hostedSubscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element> {
    state.withLock { state in
      guard state.put == nil else { return }
      state.put = { Self.put($0, $1, &$2, &$3) }
    }
    if case .unbounded = bufferingPolicy, passedNumber == 0 {
      return Subscription(subscriber: logReader(replaying: [], isHosted: true))
    }
    return subscription(ignoring: 0, bufferingPolicy: bufferingPolicy)
  }

  @inlinable
  static func put(
    _ item: HandlerQueue.Item,
    _ buffer: Buffer?,
    _ state: inout State,
    _ effects: inout HubEffects
  ) -> Reach {
    let element = Box<Element>.element(of: item.box)
    var delivery = Delivery<Element>()
    var notified = 1
    if let buffer = buffer.map(PrivateBuffer<Element>.of) {
      if buffer.isBesideLog {
        buffer.insert(element, before: state.sequence)
        state.unpark(buffer, &effects)
      } else {
        buffer.deliver(element, to: &delivery)
      }
    } else {
      appendForReaders(element, from: item.sender, &state, &delivery)
      notified = state.logReaders &+ (state.others?.buffers.count ?? 0) &- delivery.ignored
    }
    effects.add(delivery)
    return Reach(notified: notified, handled: notified &- delivery.refused)
  }
}
