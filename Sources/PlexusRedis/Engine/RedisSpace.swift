internal import Plexus
internal import PlexusSupport

/// One space of the engine for one cache of this process: its trust, its leases and its announcements.
final class RedisSpace: RouteOwner {
  private struct State: Sendable {
    var handlers: [@Sendable (SharedCache.Change) -> Void] = []
    var heartbeat = HeartbeatState<ContinuousClock.Instant>()
    /// The time until which nodes can trust their copies although the engine has lost their registrations.
    var unregisteredUntil: ContinuousClock.Instant?
    var registrations: RegistrationsState<ContinuousClock.Instant>
    /// The time of the last look at all registrations.
    var swept: ContinuousClock.Instant?
    /// Whether the server was out of reach since the space exists.
    var hasMissed = false
    var hearing = Hearing()
    /// The heartbeat that requests wait for.
    var hearingAgain: Task<Void, any Error>?
    var refused = RefusedValuesState<ContinuousClock.Instant>()
    /// The keys whose announcements are held back during a fill over another connection, and how many have come.
    var held: [String: Int] = [:]
    /// The number of operations that can register this process, or take leases.
    var operationCount = 0
    var hasLeft = false
    /// The calls that wait for the end of these operations.
    var leaving: [CheckedContinuation<Void, Never>] = []
  }

  /// The numbers of the space for metrics.
  struct Hearing: Sendable {
    /// The time at which the last heartbeat was sent that a master has answered.
    var beat: ContinuousClock.Instant?
    /// The number of registered nodes at the last look at all registrations.
    var nodeCount: Int?
    var timedOutLooks = 0
    var timedOutFills = 0
  }

  let tier: Tier
  let trust: NearTrust
  /// The changes that have failed, which the schemas of the space share.
  let debts: RemovalDebts
  let acknowledgements = Bell()
  let leases: LeaseRenewal
  /// The number of heartbeats in a row with a changed mark after which there is a pause.
  private static let roundLimit = 8
  private static let pause = Duration.milliseconds(10)
  /// The number of longest trusts for which a removal waits, each loss of the registrations included.
  private static let waitLimit = 4
  /// The time between two looks at all registrations.
  private static let sweepPause = Duration.seconds(120)
  private let nearLease: Duration
  /// Tells the other schemas of the space in this process about a change, which the server announces to other processes.
  private let tell: @Sendable (SharedCache.Change) -> Void
  /// The time for which other nodes wait for this one: it uses copies for at most this time without an answer.
  private let longestTrust: Duration
  /// Requests a heartbeat of the engine soon.
  private let hurry: @Sendable () -> Void
  private let state: Locked<State>

  init(
    _ tier: Tier,
    _ debts: RemovalDebts,
    nearLease: Duration,
    tell: @escaping @Sendable (SharedCache.Change) -> Void,
    keeping timeToKeep: Duration = .zero,
    hurry: @escaping @Sendable () -> Void
  ) {
    self.tier = tier
    self.debts = debts
    leases = LeaseRenewal(tier, lasting: tier.leaseTime)
    self.nearLease = nearLease
    self.tell = tell
    longestTrust = max(nearLease, timeToKeep)
    // The margin covers the precision of the clock, and clocks that do not run at the same speed.
    trust = NearTrust(keeping: max(.zero, timeToKeep - max(nearLease / 10, timeToKeep / 1_000)))
    state = Locked(State(registrations: RegistrationsState(trust: longestTrust)))
    self.hurry = hurry
    tier.route.begin(self)
  }

  func observe(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    state.withLock { $0.handlers.append(handler) }
  }

  // MARK: - Announcements

  /// Handles the change of a key of the server.
  func hear(_ subject: TierNames.Subject) {
    switch subject {
    case .entry(let key), .lease(let key):
      let count = state.withLock { state in
        let count = state.held[key]
        if let count { state.held[key] = count + 1 }
        return count
      }
      if count == nil {
        // The entry has an announcement of its own.
        if case .lease = subject { announce(.leased([key])) } else { announce(.changed([key])) }
      }
      if count == 0 { endHold(of: key) }
    case .tag(let name): announce(.tagged([CacheTag(name)]))
    case .epoch, .fence: loseTrack()
    case .acknowledgements: acknowledgements.ring()
    }
  }

  /// Announces a change that is held because it can be the node's own, unless that is known in the time of a copy.
  private func endHold(of key: String) {
    Task.detached { [weak self, nearLease] in
      try? await Task.sleep(for: nearLease)
      guard let self, state.withLock({ $0.held[key] ?? 0 > 0 }) else { return }
      announce(.changed([key]))
    }
  }

  /// Handles the loss of announcements, or a change that all nodes acknowledge.
  func loseTrack() {
    state.withLock { $0.heartbeat.doubt() }
    trust.end()
    announce(.everything)
    hurry()
  }

  /// Handles a new connection: announcements since an earlier one were lost.
  ///
  /// The first one loses none: unwritten values of a process that has just begun are not older than what it hears of.
  func connect() {
    let hasMissed = state.withLock { state in
      state.heartbeat.doubt()
      return state.hasMissed
    }
    if hasMissed { loseTrack() } else { hurry() }
  }

  /// Handles that nothing is announced until the connection is restored.
  func loseConnection() {
    state.withLock { state in
      state.hasMissed = true
      state.heartbeat.doubt()
    }
    announce(.interrupted)
  }

  /// Handles that the server can have leases of this process of which it does not know.
  func lose(_ keys: [String], because error: any Error) {
    leases.lose(keys)
    // After a connection error, there is a heartbeat in any case.
    if !(error is RedisConnectionError) { hurry() }
  }

  /// Handles that the engine can have lost the registrations of nodes that do not hear it.
  func loseRegistrations() {
    state.withLock { state in
      state.unregisteredUntil = .now + state.registrations.longestTrust
      state.heartbeat.doubt()
    }
  }

  /// Handles a change that another schema of the space has made in this process.
  func hear(_ change: SharedCache.Change) {
    if change == .everything { loseTrack() } else { announce(change) }
  }

  /// Handles that another master has the slot: announcements of the former one were lost.
  func routeMoved(_ route: Route, from former: Router.Master) {
    loseConnection()
    loseRegistrations()
    connect()
  }

  /// Handles that a server has executed a command to which the slot is being moved: of this one, no heartbeat confirms that
  /// its announcements arrive.
  func routeWasLeft() {
    state.withLock { $0.heartbeat.doubt() }
    trust.end()
  }

  func prepare(_ passage: Passage) async throws {
    try await tier.checkRestart(at: passage)
  }

  func announce(_ change: SharedCache.Change) {
    for handle in state.withLock({ $0.handlers }) { handle(change) }
  }

  // MARK: - Heartbeat

  /// The numbers of the space.
  var hearing: Hearing { state.withLock { $0.hearing } }

  /// Changes the numbers of the space.
  func note(_ change: (inout Hearing) -> Void) {
    state.withLock { change(&$0.hearing) }
  }

  /// Waits until a master has answered a heartbeat within the near lease.
  ///
  /// A server that was demoted still answers plain reads, with values that may have been cleared elsewhere: a clear waits
  /// only for nodes that are heard.
  ///
  /// - Throws: The reason why no master answers.
  func hear() async throws {
    let (isHeard, known) = state.withLock { state in
      let limit = ContinuousClock.now - nearLease * 9 / 10
      return (state.hearing.beat.map { $0 > limit } ?? false, state.hearingAgain)
    }
    guard !isHeard else { return }
    let task = known ?? beatInTask()
    try await task.value
  }

  private func endHearing() {
    state.withLock { $0.hearingAgain = nil }
  }

  /// Sends a heartbeat that several requests wait for.
  private func beatInTask() -> Task<Void, any Error> {
    state.withLock { state in
      if let task = state.hearingAgain { return task }
      let task = Task.detached { [self] in
        defer { endHearing() }
        _ = try await exchangeMarks()
      }
      state.hearingAgain = task
      return task
    }
  }

  /// Handles the answer of a master to the heartbeat of the engine, before which all announcements were handled.
  ///
  /// - Parameters:
  ///   - sent: The moment at which the heartbeat was sent.
  ///   - time: The time at which it was sent.
  func confirm(_ sent: NearTrust.Moment, at time: ContinuousClock.Instant) {
    let epoch = tier.epoch
    // At the same time, no doubt can begin, and this process cannot leave.
    state.withLock { state in
      guard !state.hasLeft, state.heartbeat.isConfirmed(bySending: time, knowing: epoch) else {
        return
      }
      state.hearing.beat = max(state.hearing.beat ?? time, time)
      trust.extend(until: sent.advanced(by: nearLease * 9 / 10))
    }
  }

  /// Sends a heartbeat of the space to the server if that of the engine does not suffice, and renews the leases.
  func beat() async throws {
    let epoch = tier.epoch
    let isDue = state.withLock { $0.heartbeat.isDue(at: .now, knowing: epoch) } || debts.isOwing
    guard isDue else {
      try await leases.renew()
      return try await sweep(isFirst: true)
    }
    let isSettled = try await exchangeMarks()
    if isSettled { debts.repeatAfterHeartbeat() }
    try await leases.renew()
    guard !isSettled else { return try await sweep(isFirst: false) }
    // Other nodes clear all the time, or the server gives answers of another one.
    try await Task.sleep(for: Self.pause)
    hurry()
  }

  /// Sends a heartbeat to the server, and extends the trust by its answer.
  ///
  /// - Returns: Whether the mark of the server is acknowledged.
  private func exchangeMarks() async throws -> Bool {
    // The heartbeat is repeated if the mark has changed: it is acknowledged once older copies are no longer trusted.
    // Even if heartbeats overtake each other, the newest mark is acknowledged in the end.
    for _ in 0..<Self.roundLimit {
      let (acknowledged, doubts, hasMissed) = state.withLock {
        ($0.heartbeat.acknowledged, $0.heartbeat.doubts, $0.hasMissed)
      }
      let (sent, time) = (trust.now, ContinuousClock.now)
      let revision = debts.lastRevision
      let beat = try await tier.beat(acknowledging: acknowledged, trust: longestTrust)
      let mark = beat.mark
      let isSettled = acknowledged.map { !mark.isNewer(than: $0) } ?? false
      let hasNewLoss = state.withLock { state in
        state.hearing.beat = max(state.hearing.beat ?? time, time)
        if isSettled {
          state.heartbeat.settle(sentAt: time, after: doubts, pause: HeartbeatTimes.pause)
        } else {
          state.heartbeat.doubt()
        }
        return state.registrations.note(loss: beat.loss, longestTrust: beat.longestTrust, at: .now)
      }
      // The server does not announce to this process what it has found.
      if hasNewLoss { tell(.everything) }
      debts.note(epoch: mark.epoch.counter, asOf: revision)
      if isSettled {
        trust.extend(until: sent.advanced(by: nearLease * 9 / 10))
        return true
      }
      trust.end()
      // Before the first heartbeat there was nothing to miss.
      if acknowledged != nil || hasMissed { announce(.everything) }
      // Copies stay untrusted, but this process is heard: flights that begin now can be shared.
      trust.extend(until: sent.advanced(by: nearLease * 9 / 10))
      state.withLock { $0.heartbeat.acknowledge(mark) }
    }
    return false
  }

  /// Counts the registrations, and removes those of nodes that have not been heard of for long.
  ///
  /// - Parameter isFirst: Whether only the first look at them is due: a heartbeat that requests have waited for has had none.
  /// - Throws: An error of the connection.
  private func sweep(isFirst: Bool) async throws {
    let isDue = state.withLock { state in
      let now = ContinuousClock.now
      guard state.swept.map({ !isFirst && now - $0 >= Self.sweepPause }) ?? true else {
        return false
      }
      state.swept = now
      return true
    }
    guard isDue else { return }
    let (nodes, loss) = try await tier.laggards(behind: nil)
    let report = state.withLock { state in
      let report = state.registrations.note(
        all: nodes,
        beatingWithin: HeartbeatTimes.patience,
        loss: loss,
        at: .now
      )
      state.hearing.nodeCount = nodes.count - report.ended.count
      return report
    }
    try await follow(report)
  }

  /// Removes the registrations of nodes whose trust has ended, and registers this node again after a loss.
  private func follow(_ report: RegistrationsState<ContinuousClock.Instant>.Report) async throws {
    if report.hasNewLoss {
      state.withLock { $0.heartbeat.doubt() }
      tell(.everything)
      hurry()
    }
    try await tier.forget(report.ended, loss: report.endedLoss)
  }

  /// Performs an operation that can register this process, or take leases, unless this process leaves.
  ///
  /// - Returns: The result.
  /// - Throws: The error of the operation, or ``RedisConnectionError/closed``.
  func present<Result>(_ operation: () async throws -> Result) async throws -> Result {
    try state.withLock { state in
      guard !state.hasLeft else { throw RedisConnectionError.closed }
      state.operationCount += 1
    }
    defer {
      let leaving = state.withLock { state -> [CheckedContinuation<Void, Never>] in
        state.operationCount -= 1
        guard state.operationCount == 0 else { return [] }
        defer { state.leaving = [] }
        return state.leaving
      }
      for call in leaving { call.resume() }
    }
    return try await operation()
  }

  /// Ends the trust, and releases the leases and the registration.
  func leave() async {
    let isPresent = refuse()
    await release()
    guard isPresent else { return }
    // Operations that had begun can have taken leases, and registered this process again.
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.operationCount > 0 { state.leaving.append(continuation) }
        return state.operationCount == 0
      }
      if isOver { continuation.resume() }
    }
    await release()
  }

  /// Ends the trust, and refuses all further operations.
  ///
  /// - Returns: Whether there are operations that had begun.
  @discardableResult
  func refuse() -> Bool {
    defer { trust.end() }
    return state.withLock { state in
      state.hasLeft = true
      return state.operationCount > 0
    }
  }

  /// Releases the leases and the registration.
  private func release() async {
    // A connection that breaks is replaced.
    for _ in 0..<2 {
      let released: Void? = try? await leases.releaseAll()
      let left: Void? = try? await tier.leave()
      if released != nil, left != nil { return }
    }
  }

  // MARK: - Large values

  /// Performs a change of a key over another connection, whose changes the server announces to this node as well.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - change: The change. It returns its result, and the version of the entry that it has stored, if any.
  /// - Returns: The result.
  /// - Throws: The error of the change.
  func following<Result>(
    _ key: String,
    _ change: () async throws -> (Result, SharedCache.Version?)
  ) async throws -> Result {
    state.withLock { $0.held[key] = 0 }
    var (isConfirmed, hasStored) = (false, false)
    defer {
      let count = state.withLock { $0.held.removeValue(forKey: key) } ?? 0
      if !isConfirmed, hasStored || count > 0 { announce(.changed([key])) }
    }
    let (result, version) = try await change()
    guard let version else { return result }
    hasStored = true
    for _ in 0..<Self.roundLimit where !isConfirmed {
      let count = state.withLock { $0.held[key] ?? 0 }
      guard (try? await tier.confirms(version, of: key)) == true else { break }
      isConfirmed = state.withLock { state in
        // An announcement since then can be that of a later change.
        guard state.held[key] == count else { return false }
        state.held[key] = nil
        return true
      }
    }
    return result
  }

  /// Returns whether a value is as large as one that the server did not take.
  func refuses(_ key: String, size: Int) -> Bool {
    state.withLock { $0.refused.refuses(key, size: size, at: .now) }
  }

  /// Records that the server has taken a value.
  func take(_ key: String) {
    state.withLock { $0.refused.take(key) }
  }

  /// Records that the server did not take a value.
  ///
  /// - Returns: Whether that was not known for its size.
  func refuse(_ key: String, size: Int) -> Bool {
    state.withLock { $0.refused.refuse(key, size: size, at: .now) }
  }

  // MARK: - Removals

  /// Tells the other schemas of the space in this process what this one has changed for all of them.
  func share(_ change: SharedCache.Change) { tell(change) }

  /// Waits until all nodes have acknowledged a mark, or no longer trust their copies.
  ///
  /// - Throws: ``TierError/lostRegistrations`` if the server loses them again and again, so that the wait would not end.
  func waitForAcknowledgements(of mark: TierMark) async throws {
    let start = ContinuousClock.now
    // This node acknowledges it first.
    _ = try await present { try await exchangeMarks() }
    var wait = RegistrationsState<ContinuousClock.Instant>.Silences()
    while true {
      let (nodes, loss) = try await tier.laggards(behind: mark)
      let report = state.withLock { state in
        state.registrations.note(nodes, of: &wait, loss: loss, at: .now)
      }
      try await follow(report)
      let registered = report.remaining
      let unregistered = state.withLock { $0.unregisteredUntil }.map { $0 - .now } ?? .zero
      let remaining = max(registered, unregistered)
      guard remaining > .zero else { return }
      let limit = state.withLock { $0.registrations.longestTrust } * Self.waitLimit
      guard start.duration(to: .now) < limit else { throw TierError.lostRegistrations }
      // A heartbeat of this node ends the tracking of the acknowledgements.
      await acknowledgements.wait(atMost: min(remaining, .milliseconds(20)))
      try Task.checkCancellation()
    }
  }
}
