/// A handler of the events of one channel.
final class EventHandler<E: Event>: Sendable {
  /// Calls the handler, on the actor given, to which it belongs.
  typealias Body = @Sendable (E, isolated (any Actor)?) async -> Ending

  /// How a call has ended.
  enum Ending: Sendable {
    case succeeded
    case failed
    /// There is nobody left to call.
    case ownerless
  }

  /// The place in subscription order.
  let id: Int
  let lane: EventLane<E>
  /// Tells that the owner has gone, if there is one.
  let isOrphaned: (@Sendable () -> Bool)?
  private weak let channel: EventChannel<E>?
  /// What to call; `nil` once the handler has been removed.
  private let action: Locked<Action?>

  /// The closure in a structure of its own.
  ///
  /// A bare closure that is read through a generic type is wrapped once more each time, and what is left
  /// behind is the wrapped one: every call would take longer than the one before.
  private struct Action: Sendable {
    let body: Body
  }

  init(id: Int, lane: EventLane<E>, channel: EventChannel<E>, recipe: EventHandlerRecipe<E>) {
    self.id = id
    self.lane = lane
    self.channel = channel
    isOrphaned = recipe.isOrphaned
    action = Locked(Action(body: recipe.body))
  }

  /// Calls the handler.
  ///
  /// - Returns: How that ended; ``EventChannelState/Ending/unreached`` if there is nothing to call.
  func call(
    _ event: E,
    isolation: isolated (any Actor)?
  ) async -> EventChannelState<E, EventMember<E>>.Ending {
    guard let action = action.withLock({ $0 }) else { return .unreached }
    switch await action.body(event, isolation) {
    case .succeeded: return .succeeded
    case .failed: return .failed
    case .ownerless:
      remove()
      return .unreached
    }
  }

  /// Removes the handler: it is not called any more, and what it captures is released.
  func remove() {
    guard disarm() else { return }
    if let channel {
      channel.remove(self)
    } else {
      lane.remove(self).carryOut()
    }
  }

  /// Makes sure that the handler is not called any more, and releases what it captures.
  ///
  /// - Returns: Whether that has not been done before.
  @discardableResult
  func disarm() -> Bool {
    let action = action.withLock { action in
      defer { action = nil }
      return action
    }
    return action != nil
  }
}

/// What a handler is made from.
struct EventHandlerRecipe<E: Event>: Sendable {
  let body: EventHandler<E>.Body
  /// The actor that the handler belongs to.
  let isolation: (any Actor)?
  /// Whether the handler may suspend, and has a task of its own.
  let suspends: Bool
  let isOrphaned: (@Sendable () -> Bool)?

  /// A handler that lives until it is removed.
  init(
    suspends: Bool,
    _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Void
  ) {
    let call: @Sendable (E) async throws -> HandlerResult? = { event in
      try await handler(event)
      return .handledSuccessfully
    }
    self.init(isolation: handler.isolation, suspends: suspends, call)
  }

  /// A handler with a result that lives until it is removed.
  init(
    suspends: Bool,
    _ handler: @escaping @isolated(any) @Sendable (E) async throws -> HandlerResult
  ) {
    let call: @Sendable (E) async throws -> HandlerResult? = { try await handler($0) }
    self.init(isolation: handler.isolation, suspends: suspends, call)
  }

  /// A handler that lives as long as its owner.
  init<Owner: AnyObject & Sendable>(
    owner: Owner,
    suspends: Bool,
    _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void
  ) {
    weak let weakOwner = owner
    let call: @Sendable (E) async throws -> HandlerResult? = { event in
      guard let owner = weakOwner else { return nil }
      try await handler(owner, event)
      return .handledSuccessfully
    }
    self.init(isolation: handler.isolation, suspends: suspends, call) { weakOwner == nil }
  }

  /// A handler with a result that lives as long as its owner.
  init<Owner: AnyObject & Sendable>(
    owner: Owner,
    suspends: Bool,
    _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> HandlerResult
  ) {
    weak let weakOwner = owner
    let call: @Sendable (E) async throws -> HandlerResult? = { event in
      guard let owner = weakOwner else { return nil }
      return try await handler(owner, event)
    }
    self.init(isolation: handler.isolation, suspends: suspends, call) { weakOwner == nil }
  }

  // `call` returns `nil` if the handler has no owner any more.
  private init(
    isolation: (any Actor)?,
    suspends: Bool,
    _ call: @escaping @Sendable (E) async throws -> HandlerResult?,
    isOrphaned: (@Sendable () -> Bool)? = nil
  ) {
    body = { event, _ in
      do {
        guard let result = try await call(event) else { return .ownerless }
        return result == .handledSuccessfully ? .succeeded : .failed
      } catch {
        return .failed
      }
    }
    self.isolation = isolation
    self.suspends = suspends
    self.isOrphaned = isOrphaned
  }
}
