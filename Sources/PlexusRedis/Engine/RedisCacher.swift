internal import Foundation
internal import Plexus

/// The cacher of one cache over a space of an engine.
final class RedisCacher<Value: Codable & Sendable>: SharedCacher {
  /// The size from which a value is sent over a connection of its own, so that it delays no other command.
  private static var largeSize: Int { 128 << 10 }

  /// Keeps the connection.
  private let core: EngineCore
  private let space: RedisSpace

  init(_ core: EngineCore, _ space: RedisSpace) {
    self.core = core
    self.space = space
  }

  var trust: NearTrust { space.trust }

  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void) {
    space.observe(handler)
  }

  // MARK: - Looks

  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<Value>] {
    try await RedisEngineError.translating {
      do {
        return try await space.present {
          try await space.hear()
          return try await find(try await space.debts.withoutOwed(wishes))
        }
      } catch let error as RedisConnectionError {
        if case .timedOut = error { space.note { $0.timedOutLooks += 1 } }
        throw error
      }
    }
  }

  private func find(
    _ wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<Value>] {
    // Most lookups find the entry of one key.
    if wishes.count == 1, let (key, wish) = wishes.first, wish.newerThan == nil {
      if let entry = try await space.tier.read(key, wish),
        let found = finding(.entry(entry))
      {
        return [key: found]
      }
      return try await lookByScripts(Search(rest: wishes))
    }
    var search = Search(rest: wishes)
    await read(&search)
    return try await lookByScripts(search)
  }

  /// Looks by scripts for entries and leases of the keys without a finding.
  private func lookByScripts(_ search: Search) async throws -> [String: SharedCache.Finding<Value>]
  {
    var search = search
    if search.rest.values.contains(where: \.takesLease) {
      // The task is not cancelled with its caller: the leases of a cancelled lookup would be lost.
      search = await Task { [search] in await runScripts(search) }.value
    } else {
      search = await runScripts(search)
    }
    // Otherwise its leases would be lost.
    if search.findings.isEmpty, let failure = search.failure { throw failure }
    return search.findings
  }

  /// A lookup in progress.
  private struct Search: Sendable {
    var findings: [String: SharedCache.Finding<Value>] = [:]
    /// The latest failure of a part.
    var failure: (any Error)?
    /// The wishes without a finding or a failure.
    var rest: [String: SharedCache.Wish]
  }

  /// Reads entries, which needs no script.
  private func read(_ search: inout Search) async {
    // A caller that has a copy most likely needs the lease.
    let asked = search.rest.compactMap { $0.value.newerThan == nil ? $0 : nil }
    guard !asked.isEmpty else { return }
    let wishes = search.rest
    search.rest = wishes.count == asked.count ? [:] : wishes.filter { $0.value.newerThan != nil }
    search.findings.reserveCapacity(asked.count)
    let results = await space.tier.read(for: asked) { [self] entry in
      (finding: finding(.entry(entry)), version: entry.version)
    }
    for (wish, result) in zip(asked, results) {
      switch result {
      case .failure(let error):
        search.failure = error
      case .success(let entry):
        if let finding = entry?.finding {
          search.findings[wish.key] = finding
        } else {
          search.rest[wish.key] = wishes[wish.key]
          // An entry that cannot be decoded counts as missing.
          if let version = entry?.version {
            search.rest[wish.key]?.newerThan = version
          }
        }
      }
    }
  }

  private func runScripts(_ search: Search) async -> Search {
    var search = search
    // Entries that cannot be decoded count as missing: a second lookup returns only newer ones.
    for _ in 0..<3 where !search.rest.isEmpty {
      let asked = Array(search.rest)
      let wanted = asked.filter(\.value.takesLease).map(\.key)
      space.leases.beginLook(for: wanted)
      for (wish, result) in zip(asked, await space.tier.look(for: asked)) {
        switch result {
        case .failure(let error):
          search.failure = error
          search.rest[wish.key] = nil
          if wish.value.takesLease { space.lose([wish.key], because: error) }
        case .success(.failedElsewhere(let payload)):
          search.rest[wish.key] = nil
          let failure = FailurePayload(payload)
          if let size = failure.refusedSize {
            // Each node fetches the value by itself.
            _ = space.refuse(wish.key, size: size)
          } else {
            search.findings[wish.key] = .failedElsewhere(failure.failure)
          }
        case .success(let finding):
          note(finding, for: wish.key, in: &search)
        }
      }
      space.leases.endLook(for: wanted)
    }
    return search
  }

  /// Notes a finding, or that only a newer entry will do, if it cannot be decoded.
  private func note(_ finding: TierFinding, for key: String, in search: inout Search) {
    if let found = self.finding(finding) {
      search.findings[key] = found
      search.rest[key] = nil
    } else if case .entry(let entry) = finding {
      search.rest[key]?.newerThan = entry.version
    } else {
      search.rest[key] = nil
    }
  }

  private func finding(_ finding: TierFinding) -> SharedCache.Finding<Value>? {
    switch finding {
    case .entry(let entry):
      return self.entry(entry).map {
        .entry($0, age: entry.longestAge, entry.version)
      }
    case .nothing(let previous):
      return .missing(previous: previous.flatMap { entry($0) })
    case .granted(let lease, let previous):
      space.leases.begin([lease])
      return .granted(lease, previous: previous.flatMap { entry($0) })
    case .busy(let version, let remaining, let previous):
      return .busy(version, previous: previous.flatMap { entry($0) }, holderUntil: remaining)
    case .failedElsewhere: return nil
    }
  }

  private func entry(_ entry: TierEntry) -> CacheEntry<Value>? {
    guard let payload = RedisPayload<Value>(entry.payload) else { return nil }
    // For readers of the time: the age is that of the engine's clock.
    let now = Duration.seconds(Date().timeIntervalSince1970)
    var found = CacheEntry(
      value: payload.value,
      storedAt: now - entry.longestAge,
      validator: payload.terms.validator,
      directives: payload.terms.directives
    )
    found.unchangedSince = entry.version.token
    return found
  }

  private func payload(_ entry: CacheEntry<Value>) throws -> [UInt8] {
    try RedisPayload(entry).encoded()
  }

  // MARK: - Leases

  func fill(
    _ entry: CacheEntry<Value>,
    under lease: SharedCache.Lease
  ) async throws -> SharedCache.Fill {
    // Regardless of the result, the lease is no longer used.
    defer { space.leases.end([lease]) }
    do {
      let payload = try payload(entry)
      guard !space.refuses(lease.key, size: payload.count) else {
        try await release(lease, refusing: payload.count)
        return .refused(nil)
      }
      switch try await send(payload, under: lease, entry) {
      case .success(let fill): return fill
      case .failure(let refusal):
        try await release(lease, refusing: payload.count)
        let isNew = space.refuse(lease.key, size: payload.count)
        return .refused(isNew ? SharedCache.Failure(refusal) : nil)
      }
    } catch {
      space.lose([lease.key], because: error)
      if case .timedOut? = error as? RedisConnectionError { space.note { $0.timedOutFills += 1 } }
      throw RedisEngineError.publicError(error)
    }
  }

  /// A reason why the server does not take a value.
  private struct Refusal: Error, CustomStringConvertible {
    let description: String
  }

  /// Sends a value.
  ///
  /// - Returns: Whether it was stored; the reason if it is too large, or too slow for the time of a command.
  /// - Throws: Another error of the connection.
  private func send(
    _ payload: [UInt8],
    under lease: SharedCache.Lease,
    _ entry: CacheEntry<Value>
  ) async throws -> Result<SharedCache.Fill, Refusal> {
    let tags = entry.tags.map(\.name)
    let lifetime = entry.usableTime
    guard payload.count > Self.largeSize else {
      return try await core.gate.run(payload.count) {
        .success(
          try await space.tier.fill(payload, under: lease, tags: tags, lifetime: lifetime)
        )
      }
    }
    return try await core.largeGate.run(payload.count) {
      let route = try core.largeValueRoute(of: space)
      // Otherwise, the time for connecting would count for the value.
      _ = try await space.tier.answers(on: route)
      do {
        let fill = try await space.following(lease.key) {
          let fill = try await space.tier.fill(
            payload,
            under: lease,
            tags: tags,
            lifetime: lifetime,
            on: route
          )
          return (fill, fill == .stored ? lease.version : nil)
        }
        space.take(lease.key)
        return .success(fill)
      } catch let error as RedisConnectionError {
        switch error {
        case .outboxFull(let bytes, _, let limit) where bytes > limit:
          return .failure(Refusal(description: error.description))
        case .timedOut, .lost:
          // A server that does not answer at all is no reason to give up a value.
          guard try await space.tier.answers() else { throw error }
          return .failure(Refusal(description: TierError.tooSlow(bytes: payload.count).description))
        default: throw error
        }
      }
    }
  }

  /// Releases the lease of a value that the server does not take.
  private func release(_ lease: SharedCache.Lease, refusing size: Int) async throws {
    let payload = try RedisCoding.encoder.encode(
      FailurePayload(
        description: "A value of \(size) bytes is not stored.",
        isConnectivityFailure: false,
        isOriginFailure: true,
        refusedSize: size
      )
    )
    try await space.tier.release([lease], because: [UInt8](payload))
  }

  func release(_ leases: [SharedCache.Lease], because failure: SharedCache.Failure?) async {
    defer { space.leases.end(leases) }
    let payload = failure.flatMap { failure in
      try? RedisCoding.encoder.encode(
        FailurePayload(
          // The whole text of a large answer would not fit into the outbox.
          description: String(failure.description.prefix(4_096)),
          isConnectivityFailure: failure.isConnectivityFailure,
          isOriginFailure: failure.isOriginFailure
        )
      )
    }
    // This must also work in a cancelled task.
    await Task { [space] in
      do {
        try await space.tier.release(leases, because: payload.map { [UInt8]($0) })
      } catch {
        space.lose(leases.map(\.key), because: error)
      }
    }.value
  }

  // MARK: - Changes

  /// Performs an operation of the tier.
  ///
  /// - Throws: A `CacherError` that names the keys that have failed.
  private func naming(_ operation: () async throws -> Void) async throws {
    do {
      try await operation()
    } catch let error as TierFailures {
      throw CacherError(failures: error.errors.mapValues { RedisEngineError.publicError($0) })
    } catch {
      throw RedisEngineError.publicError(error)
    }
  }

  /// Performs a change, and announces it to the other schemas in this process, also at the start: the values that they have
  /// stored by then are older.
  private func sharing<Result>(
    _ change: SharedCache.Change,
    _ operation: () async throws -> Result
  ) async throws -> Result {
    space.share(change)
    defer { space.share(change) }
    return try await operation()
  }

  func outdate(_ keys: Set<String>) async throws {
    try await naming {
      try await space.debts.owing(keys.map { .outdated($0) }, in: space.tier) {
        try await sharing(.changed(keys)) { try await space.tier.outdate(keys) }
      }
    }
  }

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    guard reach != .here else { return }
    try await naming { try await removeFromTier(what, reach: reach) }
  }

  private func removeFromTier(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    switch what {
    case .keys(let keys):
      try await space.debts.owing(keys.map { .key($0) }, in: space.tier) {
        try await sharing(.changed(keys)) { try await space.tier.remove(keys) }
      }
    case .tags(let tags):
      do {
        try await space.debts.owing(tags.map { .tag($0.name) }, in: space.tier) {
          try await sharing(.tagged(tags)) { try await space.tier.remove(tags: tags.map(\.name)) }
        }
      } catch let error as TierFailures {
        // A caller knows failures of keys only.
        throw error.worst
      }
    case .all:
      let epoch = try await space.debts.owing([.everything], in: space.tier) {
        try await removeEverything()
      }
      if reach == .everywhere {
        try await space.waitForAcknowledgements(of: TierMark(epoch: epoch))
      }
      return
    }
    if reach == .everywhere { try await space.waitForAcknowledgements(of: try await fence()) }
  }

  /// Lets every node look for its copies again: the server announces it to other processes only.
  private func fence() async throws -> TierMark {
    defer { space.share(.everything) }
    return try await space.tier.fence()
  }

  private func removeEverything() async throws -> TierEpoch {
    defer { space.share(.everything) }
    return try await space.tier.removeAll()
  }

  /// The number of removals of everything, and the last token, as far as this process knows.
  var generation: CacheGeneration? {
    let newest = space.tier.newest
    guard let epoch = newest.epoch else { return nil }
    var generation = CacheGeneration(epoch: 1, number: epoch.counter)
    generation.marks = newest.token
    return generation
  }

  func store(_ entries: [String: CacheEntry<Value>]) async throws {
    try await sharing(.changed(Set(entries.keys))) { try await storeInParts(entries) }
  }

  private func storeInParts(_ entries: [String: CacheEntry<Value>]) async throws {
    var parts: [UInt64?: [[Tier.Stored]]] = [:]
    var room: [UInt64?: Int] = [:]
    // Otherwise, they would remove the values. Other values do not wait for it: none of these has its turn yet.
    var failures = await space.debts.repeatChanges(of: entries.keys)
      .mapValues { RedisEngineError.publicError($0) }
    for (key, entry) in entries where failures[key] == nil {
      do {
        let payload = try payload(entry)
        let item = Tier.Stored(
          key: key,
          payload: payload,
          tags: entry.tags.map(\.name),
          lifetime: entry.usableTime,
          unchangedSince: entry.unchangedSince,
          id: entry.storeID.map { "\(String($0.cache, radix: 36)) \($0.number)" }
        )
        let epoch = entry.generation?.number
        if payload.count > Self.largeSize {
          try await store([item], requiring: epoch, isLarge: true)
          continue
        }
        var group = parts[epoch]?.popLast() ?? []
        if room[epoch] ?? 0 < payload.count {
          if !group.isEmpty { parts[epoch, default: []].append(group) }
          (group, room[epoch]) = ([], Self.storeSize)
        }
        group.append(item)
        room[epoch, default: 0] -= payload.count
        parts[epoch, default: []].append(group)
      } catch {
        failures[key] = Self.storeError((error as? TierFailures)?.errors[key] ?? error)
      }
    }
    for (epoch, parts) in parts {
      for part in parts {
        do {
          try await store(part, requiring: epoch, isLarge: false)
        } catch let error as TierFailures {
          failures.merge(error.errors.mapValues { Self.storeError($0) }) { first, _ in first }
        }
      }
    }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Returns the error of a value that was not stored, for the cache.
  private static func storeError(_ error: any Error) -> any Error {
    if case .changed? = error as? TierError { return SharedCache.Overtaken() }
    return RedisEngineError.publicError(error)
  }

  /// The number of bytes of values that are stored together.
  private static var storeSize: Int { 1 << 20 }

  /// Stores values.
  ///
  /// A large value that the server does not take replaces the entry of its key by none: that one is older.
  private func store(
    _ items: [Tier.Stored],
    requiring epoch: UInt64?,
    isLarge: Bool
  ) async throws {
    let (key, size) = (items[0].key, items[0].payload.count)
    if isLarge, space.refuses(key, size: size) {
      try await space.tier.remove([key])
      // Nothing is announced of a key that this process has not looked for.
      return space.announce(.changed([key]))
    }
    do {
      guard isLarge else {
        return try await core.gate.run(size) {
          _ = try await space.tier.store(items, requiring: epoch)
        }
      }
      try await core.largeGate.run(size) {
        let route = try core.largeValueRoute(of: space)
        _ = try await space.tier.answers(on: route)
        try await space.following(key) {
          do {
            return ((), try await space.tier.store(items, requiring: epoch, on: route))
          } catch let error as TierFailures {
            // The announcements of earlier changes come before this answer.
            _ = try? await space.tier.answers()
            throw error
          }
        }
        space.take(key)
      }
    } catch let error as TierFailures where isLarge {
      guard let reason = error.errors[key] as? RedisConnectionError else { throw error }
      switch reason {
      case .outboxFull(let bytes, _, let limit) where bytes > limit:
        _ = space.refuse(key, size: size)
      case .timedOut, .lost:
        if (try? await space.tier.answers()) == true { _ = space.refuse(key, size: size) }
      default: break
      }
      throw error
    }
  }
}
