public import Synchronization

/// The readers of the actions of a store, which only the draining thread accesses.
@usableFromInline
struct ActionLog<State: Sendable, Action: Sendable>: Sendable {
  /// One hub for each reader, which has its place among the actions.
  @usableFromInline var hubs: ContiguousArray<BroadcastHub<ActionRecord<State, Action>>> = []
  /// The number of the last action.
  @usableFromInline var lastNumber = 0

  init() {}

  /// Whether no reader is left.
  @inlinable var isUnread: Bool { hubs.isEmpty }

  mutating func insert(_ hub: BroadcastHub<ActionRecord<State, Action>>) {
    hubs.append(hub)
  }

  /// Removes the readers that have left.
  @inlinable
  mutating func prune() {
    hubs.removeAll { !$0.hasSubscribers.load(ordering: .relaxed) }
  }

  /// Returns the number of the next action.
  @inlinable
  mutating func nextNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// Sends a record to the readers.
  @inlinable
  func send(_ record: ActionRecord<State, Action>) {
    for hub in hubs { hub.send(record) }
  }

  /// Ends the streams of the readers.
  @usableFromInline
  func finish() {
    for hub in hubs { hub.finish() }
  }
}

extension StoreEngine {
  /// Adds a reader between two actions.
  @usableFromInline
  @inline(never)
  func add(_ hub: BroadcastHub<ActionRecord<State, Action>>, to machine: inout Machine) {
    var log = machine.log ?? ActionLog()
    log.insert(hub)
    machine.log = log
  }

  /// Applies an action to the state, and records it once the state is published.
  @inlinable
  @inline(never)
  func reduceLogged(_ action: Action, _ machine: inout Machine) {
    machine.log?.prune()
    guard let log = machine.log, !log.isUnread else {
      machine.log = nil
      return apply(action, &machine)
    }
    let (before, number) = (machine.state, machine.log?.nextNumber() ?? 1)
    apply(action, &machine)
    let after = machine.state
    log.send(ActionRecord(action: action, before: before, after: after, number: number))
  }

  /// Returns a stream of the actions that are dispatched after this call.
  func actions(
    bufferingPolicy: BufferingPolicy<ActionRecord<State, Action>>
  ) -> AsyncStream<ActionRecord<State, Action>> {
    let hub = BroadcastHub<ActionRecord<State, Action>>()
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    if !queue.add(.reader(hub), handOver: handOver, perform) { hub.finish() }
    return AsyncStream(subscription)
  }
}
