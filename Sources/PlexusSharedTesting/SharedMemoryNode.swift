public import Plexus
internal import PlexusSupport

/// The cacher of one node of a ``SharedMemory``, whose connection can be cut off and made slow.
///
/// ## Topics
///
/// ### Breaking the connection
/// - ``cutOff()``
/// - ``reconnect()``
/// - ``isConnected``
/// - ``Unreachable``
///
/// ### Delaying
/// - ``delayCalls(by:)``
/// - ``delayAnnouncements()``
/// - ``hearAnnouncements()``
///
/// ### Monitoring
/// - ``lookCount``
public final class SharedMemoryNode<Value: Sendable>: SharedCacher {
  private struct State: Sendable {
    var isConnected = true
    /// The number of announcements that are still to be handled.
    var announcementCount = 0
    var isDeaf = false
    var unheard: [SharedCache.Change] = []
    var delay = Duration.zero
    var known: SharedMemoryState<Value>.Knowledge
    /// The end of the trust, if the node is cut off or deaf.
    var trustEnd: Duration?
    var lookCount = 0
    /// The leases that are neither filled nor released.
    var held: Set<SharedCache.Lease> = []
    var handlers: [@Sendable (SharedCache.Change) -> Void] = []
  }

  private let engine: SharedMemory<Value>
  let number: Int
  /// The time until which copies in memory are used without asking the engine.
  public let trust: NearTrust
  private let state: Locked<State>

  init(
    _ engine: SharedMemory<Value>,
    number: Int,
    knowledge: SharedMemoryState<Value>.Knowledge
  ) {
    self.engine = engine
    self.number = number
    trust = NearTrust(clock: engine.clock, keeping: engine.timeToKeep)
    state = Locked(State(known: knowledge))
    extendTrust()
  }

  private func extendTrust() {
    trust.extend(until: trust.now.advanced(by: .seconds(Int64.max / 4)))
  }

  /// The time until which the node trusts its copies without an answer of the engine.
  var trustEnd: Duration? { state.withLock { $0.trustEnd } }

  /// Records that an announcement follows: no reply precedes it, as on a connection.
  func expectAnnouncement() {
    state.withLock { $0.announcementCount += 1 }
  }

  /// Handles an announcement that was expected, unless the connection is cut off.
  func hear(_ change: SharedCache.Change) {
    defer { state.withLock { $0.announcementCount -= 1 } }
    let isHeard = state.withLock { state in
      guard state.isConnected else { return false }
      if state.isDeaf { state.unheard.append(change) }
      return !state.isDeaf
    }
    if isHeard { announce(change) }
  }

  private func announce(_ change: SharedCache.Change) {
    if change == .everything {
      trust.end()
      extendTrust()
    }
    for handle in state.withLock({ $0.handlers }) { handle(change) }
  }
}

// MARK: - Faults

extension SharedMemoryNode {
  /// Whether the engine can be reached.
  public var isConnected: Bool { state.withLock { $0.isConnected } }

  /// The number of looks that the engine has answered, each of them for one or several keys.
  public var lookCount: Int { state.withLock { $0.lookCount } }

  /// Breaks the connection: all calls fail, and the trust ends after the near lease of the engine.
  ///
  /// `SharedCache.Change.interrupted` is announced.
  public func cutOff() {
    let end = engine.now + max(engine.nearLease, engine.timeToKeep)
    trust.extend(until: trust.now.advanced(by: engine.nearLease))
    state.withLock { state in
      state.isConnected = false
      state.unheard = []
      state.trustEnd = end
    }
    engine.perform { content, now, _ in
      content.disconnect(number, at: now)
      return ((), [])
    }
    announce(.interrupted)
  }

  /// Reconnects the node, even if it was not cut off.
  ///
  /// Announcements were lost: `SharedCache.Change.everything` is announced.
  public func reconnect() {
    let held = state.withLock { state in
      state.isConnected = true
      state.announcementCount += 1
      state.isDeaf = false
      state.unheard = []
      state.trustEnd = nil
      return state.held
    }
    engine.perform { content, now, _ in
      content.reconnect(number, holding: held, at: now)
      return ((), [])
    }
    announce(.everything)
    state.withLock { $0.announcementCount -= 1 }
  }

  /// Holds announcements back until ``hearAnnouncements()``; calls are answered.
  ///
  /// The trust ends after the near lease of the engine.
  public func delayAnnouncements() {
    let end = engine.now + max(engine.nearLease, engine.timeToKeep)
    trust.extend(until: trust.now.advanced(by: engine.nearLease))
    state.withLock { state in
      state.isDeaf = true
      state.trustEnd = end
    }
  }

  /// Handles the announcements that were held back, in order, and later ones at once.
  public func hearAnnouncements() {
    extendTrust()
    while true {
      let change = state.withLock { state -> SharedCache.Change? in
        guard state.unheard.isEmpty else { return state.unheard.removeFirst() }
        state.isDeaf = false
        state.trustEnd = nil
        return nil
      }
      guard let change else { return }
      announce(change)
    }
  }

  /// Delays each call by a time of the engine's clock, before the engine performs it.
  ///
  /// - Parameter duration: The time.
  public func delayCalls(by duration: Duration) {
    state.withLock { $0.delay = duration }
  }
}

// MARK: - Cacher

extension SharedMemoryNode {
  /// The error of calls while a node is cut off.
  public struct Unreachable: Error, Hashable, CustomStringConvertible {
    /// A description of the error.
    public var description: String { "The node is cut off from the engine." }
  }

  /// Performs a call.
  private func call<Result: Sendable>(
    _ body: (inout SharedMemoryState<Value>, Duration, Set<Int>) -> (
      Result, [SharedMemoryState<Value>.Announcement]
    )
  ) async throws -> Result {
    let delay = state.withLock { $0.delay }
    if delay > .zero { try await engine.clock.sleep(for: delay) }
    typealias Answer = (result: Result, knowledge: SharedMemoryState<Value>.Knowledge)
    let answer = engine.perform {
      content,
      now,
      nodes -> (Answer?, [SharedMemoryState<Value>.Announcement]) in
      // A node that is cut off later gives its leases back.
      let (known, isConnected) = state.withLock { ($0.known, $0.isConnected) }
      guard isConnected else { return (nil, []) }
      let announcements = content.reconcile(known, nodes: nodes)
      let (result, others) = body(&content, now, nodes)
      return ((result, content.knowledge), announcements + others)
    }
    while state.withLock({ $0.announcementCount > 0 }) { await Task.detached {}.value }
    guard let (result, knowledge) = answer else { throw Unreachable() }
    state.withLock { state in
      if state.known.epoch.counter <= knowledge.epoch.counter {
        state.known.epoch = knowledge.epoch
      }
      state.known.token = max(state.known.token, knowledge.token)
    }
    return result
  }

  /// Looks for entries, and takes leases for the keys that have to be fetched.
  ///
  /// - Parameter wishes: The wish for each key.
  /// - Returns: The finding for each key.
  /// - Throws: ``Unreachable``.
  public func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<Value>] {
    state.withLock { $0.lookCount += 1 }
    let findings = try await call { content, now, _ in
      var findings: [String: SharedCache.Finding<Value>] = [:]
      for (key, wish) in wishes { findings[key] = content.look(key, wish, by: number, at: now) }
      return (findings, [])
    }
    let leases = findings.values.compactMap { finding in
      if case .granted(let lease, _) = finding { lease } else { nil }
    }
    state.withLock { $0.held.formUnion(leases) }
    return findings
  }

  /// Stores a value that was fetched under a lease, and releases the lease.
  ///
  /// - Parameters:
  ///   - entry: The value.
  ///   - lease: The lease.
  /// - Returns: Whether the value was stored.
  /// - Throws: ``Unreachable``.
  public func fill(
    _ entry: CacheEntry<Value>,
    under lease: SharedCache.Lease
  ) async throws -> SharedCache.Fill {
    state.withLock { _ = $0.held.remove(lease) }
    return try await call { content, now, _ in
      content.fill(entry, under: lease, by: number, at: now)
    }
  }

  /// Releases leases without a value.
  ///
  /// - Parameters:
  ///   - leases: The leases.
  ///   - failure: The failure of the fetches, if any.
  public func release(_ leases: [SharedCache.Lease], because failure: SharedCache.Failure?) async {
    state.withLock { $0.held.subtract(leases) }
    try? await call { content, now, _ in
      ((), content.release(leases, because: failure, by: number, at: now))
    }
  }

  /// Marks values as changed at their origin.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: ``Unreachable``.
  public func outdate(_ keys: Set<String>) async throws {
    try await call { content, _, _ in ((), content.outdate(keys, by: number)) }
  }

  /// Removes entries.
  ///
  /// - Parameters:
  ///   - what: The entries.
  ///   - reach: The guarantee that holds when the call returns.
  /// - Throws: ``Unreachable``; a `CancellationError` if the task is cancelled while it waits for other nodes.
  public func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    guard reach != .here else { return }
    try await call { content, _, nodes in
      switch what {
      case .keys(let keys): ((), content.remove(keys, by: number))
      case .tags(let tags): ((), content.remove(tags, by: number))
      case .all: ((), content.removeAll(by: number, nodes: nodes))
      }
    }
    if reach == .everywhere { try await engine.waitForTrust(except: number) }
  }

  /// The number of removals of everything that have reached the node.
  public var generation: CacheGeneration? {
    let known = state.withLock { $0.known }
    var generation = CacheGeneration(epoch: 1, number: known.epoch.counter)
    generation.marks = known.token
    return generation
  }

  /// Stores values that did not come from a fetch.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: ``Unreachable``; a `CacherError` with the keys whose values were not stored.
  public func store(_ entries: [String: CacheEntry<Value>]) async throws {
    let overtaken = try await call { content, now, _ in
      content.store(entries, by: number, at: now)
    }
    guard !overtaken.isEmpty else { return }
    throw CacherError(
      failures: Dictionary(uniqueKeysWithValues: overtaken.map { ($0, SharedCache.Overtaken()) })
    )
  }

  /// Calls a handler with the changes that other nodes make from now on.
  ///
  /// - Parameter handler: The handler.
  public func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    state.withLock { $0.handlers.append(handler) }
  }
}
