public import Synchronization

extension EventBus {
  /// The channels of a bus, and the handlers that are registered with an id.
  ///
  /// Comparing scopes and ids calls user code, which must not run under the lock. The tables are
  /// therefore indexed by hash values, and candidates are compared without the lock.
  @usableFromInline
  final class Core: Sendable {
    private struct ScopedKey: Hashable, Sendable {
      let type: ObjectIdentifier
      let hash: Int
    }

    private struct Tables: Sendable {
      var unscoped = IdentityTable<EventChannel>()
      var scoped: [ScopedKey: ContiguousArray<EventChannel>] = [:]
      /// The number of scoped channels, and the number above which unused ones are searched for.
      var scopedCount = 0
      var sweepThreshold = 64
      var identified: [Int: [IdentifiedHandler]] = [:]
      /// The log of posts, once there has been a reader.
      var log: PostLog?

      /// Removes handlers whose ids have a hash value; the caller must retain them.
      mutating func remove(_ handlers: [IdentifiedHandler], hash: Int) {
        guard !handlers.isEmpty else { return }
        // Many handlers can share an id.
        let removed = Set(handlers.map(ObjectIdentifier.init))
        identified[hash]?.removeAll { removed.contains(ObjectIdentifier($0)) }
        if identified[hash]?.isEmpty == true { identified[hash] = nil }
      }
    }

    let clock: any Clock<Duration>
    let time: TimeSource
    /// The connections with other processes.
    let links = LinkTable()
    private let tables = Locked(Tables())
    /// Whether the log of posts has readers; changed under the lock of the tables.
    @usableFromInline let isLogged = Atomic<Bool>(false)

    init(clock: any Clock<Duration>) {
      self.clock = clock
      time = TimeSource(clock)
    }

    // MARK: - Channels

    /// Returns the channel of a type without a scope, if any.
    @usableFromInline
    func channel(of type: ObjectIdentifier) -> EventChannel? {
      tables.withLock { $0.unscoped[type] }
    }

    /// Returns the channel of a type and scope, if any.
    @usableFromInline
    func channel(of type: ObjectIdentifier, in scope: EventScope?) -> EventChannel? {
      find(type, in: scope).channel
    }

    /// Returns the channel of a type and scope, if any, and the log of posts while it has readers.
    func find(
      _ type: ObjectIdentifier,
      in scope: EventScope?
    ) -> (channel: EventChannel?, log: PostLog?) {
      // Without a scope, this copies nothing.
      switch scope {
      case nil:
        return tables.withLock { ($0.unscoped[type], readLog(in: $0)) }
      case let scope?:
        let key = ScopedKey(type: type, hash: scope.hashValue)
        let (candidates, log) = tables.withLock { ($0.scoped[key], readLog(in: $0)) }
        return (candidates?.first { $0.scope?.element == scope }, log)
      }
    }

    /// Returns the channel of a type and scope; creates it if necessary.
    func makeChannel(of eventType: any Event.Type, in scope: EventScope?) -> EventChannel {
      // Without a scope, this copies nothing.
      switch scope {
      case nil: makeChannel(of: eventType)
      case let scope?: makeChannel(of: eventType, in: scope)
      }
    }

    private func makeChannel(of eventType: any Event.Type) -> EventChannel {
      let type = ObjectIdentifier(eventType)
      if let channel = channel(of: type) { return channel }
      let new = EventChannel(of: eventType, scope: nil, core: self)
      return tables.withLock { tables in
        if let known = tables.unscoped[type] { return known }
        tables.unscoped[type] = new
        return new
      }
    }

    private func makeChannel(of eventType: any Event.Type, in scope: EventScope) -> EventChannel {
      let type = ObjectIdentifier(eventType)
      if let channel = channel(of: type, in: scope) { return channel }
      let new = EventChannel(of: eventType, scope: Box(scope), core: self)
      let key = ScopedKey(type: type, hash: scope.hashValue)
      var compared: ContiguousArray<EventChannel> = []
      while true {
        // `nil` once the new channel is inserted: the candidates may have been dropped meanwhile.
        let (candidates, isCrowded) = tables.withLock {
          tables -> (ContiguousArray<EventChannel>?, Bool) in
          let candidates = tables.scoped[key, default: []]
          guard candidates.elementsEqual(compared, by: ===) else { return (candidates, false) }
          tables.scoped[key, default: []].append(new)
          tables.scopedCount += 1
          return (nil, tables.scopedCount > tables.sweepThreshold)
        }
        guard let candidates else {
          if isCrowded { sweep() }
          return new
        }
        if let known = candidates.first(where: { $0.scope?.element == scope }) { return known }
        compared = candidates
      }
    }

    /// Calls the body with the channel of a type and scope, which is created if necessary.
    ///
    /// - Parameters:
    ///   - type: The event type.
    ///   - scope: The scope.
    ///   - body: A closure that returns `nil` if the bus has dropped the channel meanwhile. It is then called again
    ///     with another channel.
    /// - Returns: The result of the body.
    @usableFromInline
    func withChannel<Result>(
      of type: any Event.Type,
      in scope: EventScope?,
      _ body: (EventChannel) -> Result?
    ) -> Result {
      while true {
        if let result = body(makeChannel(of: type, in: scope)) { return result }
      }
    }

    /// Drops the channel of a scope if it is empty; called with no lock held.
    func forget(_ channel: EventChannel, scope: EventScope) {
      let key = ScopedKey(type: channel.type, hash: scope.hashValue)
      tables.release { tables -> (EventChannel)? in
        guard let index = tables.scoped[key]?.firstIndex(where: { $0 === channel }),
          channel.retire()
        else { return nil }
        tables.scopedCount -= 1
        guard tables.scoped[key]?.count ?? 0 > 1 else {
          return tables.scoped.removeValue(forKey: key)?.first
        }
        return tables.scoped[key]?.remove(at: index)
      }
    }

    /// The channels of all types and scopes.
    var channels: [EventChannel] {
      tables.withLock { Array($0.unscoped.values) + Array($0.scoped.values.joined()) }
    }

    /// The number of scoped channels.
    var scopedChannelCount: Int {
      tables.withLock { $0.scopedCount }
    }

    /// Prunes the scoped channels of handlers with a released owner and of expired events.
    private func sweep() {
      let channels = tables.withLock { Array($0.scoped.values) }
      for channel in channels.joined() { channel.prune() }
      tables.withLock { $0.sweepThreshold = max(64, 2 * $0.scopedCount) }
    }

    // MARK: - Handlers

    /// Adds a handler that lives until it is cancelled or its owner is released.
    @usableFromInline
    @discardableResult
    func add(_ recipe: Handler.Recipe, of type: any Event.Type, in scope: EventScope?) -> Handler {
      withChannel(of: type, in: scope) { channel in
        channel.add(recipe, at: time.now()).map(channel.start)
      }
    }

    // MARK: - Handlers with an id

    /// A handler that lives until it is removed by its id.
    private final class IdentifiedHandler: Sendable {
      let id: AnyID.Weak
      let channel: UInt64
      let handler: Handler

      init(id: AnyID.Weak, channel: EventChannel, handler: Handler) {
        self.id = id
        self.channel = channel.id
        self.handler = handler
      }
    }

    /// Adds a handler that lives until it is removed by its id.
    ///
    /// - Parameters:
    ///   - recipe: The parts of the handler.
    ///   - id: The id.
    ///   - type: The type of events.
    ///   - scope: The scope.
    ///   - replacing: Whether handlers with the same id, type and scope are removed atomically.
    @usableFromInline
    func add(
      _ recipe: Handler.Recipe,
      id: AnyID,
      of type: any Event.Type,
      in scope: EventScope?,
      replacing: Bool
    ) {
      let hash = id.hashValue
      let weakID = AnyID.Weak(id)
      while true {
        let channel = makeChannel(of: type, in: scope)
        let known = replacing ? tables.withLock { $0.identified[hash, default: []] } : []
        let replaced = known.filter { $0.channel == channel.id && $0.id.matches(id) }
        let now = time.now()
        let added = tables.withLock { tables -> EventChannel.Addition? in
          guard !replacing || tables.identified[hash, default: []].elementsEqual(known, by: ===),
            let added = channel.add(recipe, at: now, replacing: replaced.map(\.handler))
          else { return nil }
          let entry = IdentifiedHandler(id: weakID, channel: channel, handler: added.handler)
          tables.remove(replaced, hash: hash)
          tables.identified[hash, default: []].append(entry)
          return added
        }
        if let added {
          channel.start(added)
          return
        }
      }
    }

    /// Removes the handlers with an id.
    ///
    /// - Parameters:
    ///   - id: The id.
    ///   - channel: The id of the only channel to search, or `nil` for all.
    func removeHandlers(id: AnyID, channel: UInt64?) {
      let hash = id.hashValue
      let known = tables.withLock { $0.identified[hash, default: []] }
      let removed = known.filter { (channel ?? $0.channel) == $0.channel && $0.id.matches(id) }
      guard !removed.isEmpty else { return }
      for handler in removed { handler.handler.cancel() }
      tables.withLock { $0.remove(removed, hash: hash) }
    }

    // MARK: - The log of posts

    /// Returns a stream of the posts that begin after this call.
    func posts(bufferingPolicy: BufferingPolicy<EventPost>) -> AsyncStream<EventPost> {
      let new = PostLog()
      let subscription = tables.withLock { tables in
        let log = tables.log ?? new
        tables.log = log
        isLogged.store(true, ordering: .relaxed)
        return log.subscription(bufferingPolicy: bufferingPolicy)
      }
      return AsyncStream(subscription)
    }

    /// Returns the log of posts while it has readers; without them, later posts do not look for it.
    private func readLog(in tables: Tables) -> PostLog? {
      guard isLogged.load(ordering: .relaxed) else { return nil }
      if let log = tables.log, log.hub.hasSubscribers.load(ordering: .relaxed) { return log }
      isLogged.store(false, ordering: .relaxed)
      return nil
    }

    // MARK: - Ending

    /// Ends all connections and channels when the bus is released.
    func finish() {
      links.finish()
      let tables = tables.withLock { tables in
        defer { tables = Tables() }
        return tables
      }
      for channel in tables.unscoped.values { channel.finish() }
      for channel in tables.scoped.values.joined() { channel.finish() }
      tables.log?.hub.finish()
    }
  }
}
