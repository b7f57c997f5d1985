/// The channels of a bus, and the handlers that are known by an id.
///
/// Scopes and ids are values of a user, whose comparison must not run under the lock. The tables are
/// therefore indexed by their hash values; whatever has the right one is compared without the lock.
final class EventBusCore: Sendable {
  private struct ScopedKey: Hashable, Sendable {
    let type: ObjectIdentifier
    let hash: Int
  }

  private struct Tables: Sendable {
    var unscoped: [ObjectIdentifier: any AnyEventChannel] = [:]
    var scoped: [ScopedKey: ContiguousArray<any AnyEventChannel>] = [:]
    /// How many scoped channels there are, and may be before those without use are looked for.
    var scopedCount = 0
    var crowd = 64
    var identified: [Int: [IdentifiedHandler]] = [:]

    /// Forgets handlers whose ids have a hash value; the caller keeps them.
    mutating func remove(_ handlers: [IdentifiedHandler], hash: Int) {
      guard !handlers.isEmpty else { return }
      // There may be very many with the same id.
      let removed = Set(handlers.map(ObjectIdentifier.init))
      identified[hash]?.removeAll { removed.contains(ObjectIdentifier($0)) }
      if identified[hash]?.isEmpty == true { identified[hash] = nil }
    }
  }

  let time: TimeSource
  private let tables = Locked(Tables())

  init(clock: any Clock<Duration>) {
    time = TimeSource(clock)
  }

  // MARK: - Channels

  /// The channel of a type and scope, if there is one.
  func channel<E: Event>(of type: E.Type, in scope: EventScope?) -> EventChannel<E>? {
    let type = ObjectIdentifier(type)
    guard let scope else {
      return tables.withLock { $0.unscoped[type] } as? EventChannel<E>
    }
    let key = ScopedKey(type: type, hash: scope.hashValue)
    let candidates = tables.withLock { $0.scoped[key] }
    return candidates?.first { $0.scope == scope } as? EventChannel<E>
  }

  /// The channel of a type and scope, made if there is none.
  func makeChannel<E: Event>(of type: E.Type, in scope: EventScope?) -> EventChannel<E> {
    if let channel = channel(of: type, in: scope) { return channel }
    let new = EventChannel<E>(scope: scope, core: self)
    let type = ObjectIdentifier(type)
    guard let scope else {
      let channel = tables.withLock { tables in
        if let known = tables.unscoped[type] { return known }
        tables.unscoped[type] = new
        return new
      }
      return channel as? EventChannel<E> ?? new
    }
    let key = ScopedKey(type: type, hash: scope.hashValue)
    var compared: ContiguousArray<any AnyEventChannel> = []
    while true {
      // `nil` once the new one is there: all those that it was compared with may have gone meanwhile.
      let (candidates, isCrowded) = tables.withLock {
        tables -> (ContiguousArray<any AnyEventChannel>?, Bool) in
        let candidates = tables.scoped[key, default: []]
        guard candidates.elementsEqual(compared, by: ===) else { return (candidates, false) }
        tables.scoped[key, default: []].append(new)
        tables.scopedCount += 1
        return (nil, tables.scopedCount > tables.crowd)
      }
      guard let candidates else {
        if isCrowded { sweep() }
        return new
      }
      if let known = candidates.first(where: { $0.scope == scope }) as? EventChannel<E> {
        return known
      }
      compared = candidates
    }
  }

  /// Calls the body with the channel of a type and scope, made if there is none.
  ///
  /// - Parameters:
  ///   - type: The type of events.
  ///   - scope: The scope.
  ///   - body: What to do. It returns `nil` if the bus has forgotten the channel meanwhile, and is called
  ///     with another one then.
  /// - Returns: What the body returns.
  func withChannel<E: Event, Result>(
    of type: E.Type,
    in scope: EventScope?,
    _ body: (EventChannel<E>) -> Result?
  ) -> Result {
    while true {
      if let result = body(makeChannel(of: type, in: scope)) { return result }
    }
  }

  /// Forgets the channel of a scope if it has come out of use; called with no lock held.
  func forget(_ channel: any AnyEventChannel, scope: EventScope) {
    let key = ScopedKey(type: channel.eventType, hash: scope.hashValue)
    let removed = tables.withLock { tables -> (any AnyEventChannel)? in
      guard let index = tables.scoped[key]?.firstIndex(where: { $0 === channel }),
        channel.retire()
      else { return nil }
      tables.scopedCount -= 1
      guard tables.scoped[key]?.count ?? 0 > 1 else {
        return tables.scoped.removeValue(forKey: key)?.first
      }
      return tables.scoped[key]?.remove(at: index)
    }
    withExtendedLifetime(removed) {}
  }

  /// The number of channels of scopes.
  var scopedChannelCount: Int {
    tables.withLock { $0.scopedCount }
  }

  /// Looks for channels that are kept by nothing but owners who have gone, or events whose time is over.
  private func sweep() {
    let channels = tables.withLock { Array($0.scoped.values) }
    for channel in channels.joined() { channel.prune() }
    tables.withLock { $0.crowd = max(64, 2 * $0.scopedCount) }
  }

  // MARK: - Handlers with an id

  /// A handler that lives until it is removed by its id.
  private final class IdentifiedHandler: Sendable {
    let id: AnyID
    let channel: UInt64
    let handler: any Sendable & AnyObject
    let remove: @Sendable () -> Void

    init<E: Event>(id: AnyID, channel: EventChannel<E>, handler: EventHandler<E>) {
      self.id = id
      self.channel = channel.id
      self.handler = handler
      remove = { handler.remove() }
    }
  }

  /// Adds a handler that lives until it is removed by its id.
  ///
  /// - Parameters:
  ///   - recipe: What to make it from.
  ///   - id: The id.
  ///   - scope: The scope.
  ///   - replacing: Whether those of the same id, type and scope are removed in the same moment.
  func add<E: Event>(
    _ recipe: EventHandlerRecipe<E>,
    id: AnyID,
    scope: EventScope?,
    replacing: Bool
  ) {
    let hash = id.hashValue
    while true {
      let channel = makeChannel(of: E.self, in: scope)
      let known = replacing ? tables.withLock { $0.identified[hash, default: []] } : []
      let replaced = known.filter { $0.channel == channel.id && $0.id == id }
      let handlers = replaced.compactMap { $0.handler as? EventHandler<E> }
      let now = time.now()
      let added = tables.withLock { tables -> AddedEventHandler<E>? in
        guard !replacing || tables.identified[hash, default: []].elementsEqual(known, by: ===),
          let added = channel.add(recipe, at: now, replacing: handlers)
        else { return nil }
        let entry = IdentifiedHandler(id: id, channel: channel, handler: added.handler)
        tables.remove(replaced, hash: hash)
        tables.identified[hash, default: []].append(entry)
        return added
      }
      if let added { return added.start() }
    }
  }

  /// Removes the handlers with an id.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - channel: The number of the only channel that is looked at; `nil` for all.
  func removeHandlers(id: AnyID, channel: UInt64?) {
    let hash = id.hashValue
    let known = tables.withLock { $0.identified[hash, default: []] }
    let removed = known.filter { (channel ?? $0.channel) == $0.channel && $0.id == id }
    guard !removed.isEmpty else { return }
    tables.withLock { $0.remove(removed, hash: hash) }
    for handler in removed { handler.remove() }
  }

  // MARK: - Ending

  /// The bus has been released.
  func finish() {
    let tables = tables.withLock { tables in
      defer { tables = Tables() }
      return tables
    }
    for channel in tables.unscoped.values { channel.finish() }
    for channel in tables.scoped.values.joined() { channel.finish() }
  }
}

/// A channel of whatever type of events.
protocol AnyEventChannel: AnyObject, Sendable {
  /// The type of events.
  var eventType: ObjectIdentifier { get }
  /// The scope; `nil` is none.
  var scope: EventScope? { get }

  /// Removes the handlers whose owners have gone, and what has been kept too long.
  func prune()
  /// Lets the bus forget the channel if nothing would be lost; called under the lock of the bus.
  ///
  /// - Returns: Whether it may.
  func retire() -> Bool
  /// The bus has been released.
  func finish()
}

extension EventChannel {
  var eventType: ObjectIdentifier { ObjectIdentifier(E.self) }
}
