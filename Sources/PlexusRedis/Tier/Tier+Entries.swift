internal import Plexus
internal import PlexusSupport

// MARK: - Entries

extension Tier {
  /// Looks for entries, and takes leases for the keys that have to be fetched.
  ///
  /// - Returns: A finding for each wish, in the same order, or what the look for it has failed with.
  func look(for wishes: [KeyedWish]) async -> [Result<TierFinding, any Error>] {
    var nonces: [String] = []
    let parts = await run(TierScripts.look, inPartsOf: wishes) { wishes in
      let (nonce, knowledge) = knowledgeWithNonce
      nonces.append(nonce)
      var tags = TagNumbers()
      var call = RedisScript.Call(
        keys: heads,
        arguments: knowledge + [
          .text(names.schema), .number(Int64(wishes.count)), .text(holder),
          milliseconds(times.lease), milliseconds(times.retention),
        ]
      )
      for wish in wishes {
        call.keys += [names.entry(wish.key), names.lease(wish.key), names.fetch(wish.key)]
        call.arguments.append(.text(text(of: wish, &tags)))
      }
      call.keys += tags.names.map { names.tag($0) }
      return call
    }
    return zip(parts, nonces).flatMap { part, nonce in
      let (wishes, reply) = part
      do {
        guard let elements = try reply.get().elements, elements.count == wishes.count + 3,
          elements[1].bytes?.elementsEqual(nonce.utf8) == true, let epoch = note(elements[0]),
          let time = elements[2].integer
        else {
          throw TierError.unexpectedReply
        }
        let moment = (server: Duration.milliseconds(time), node: ContinuousClock.now)
        _ = holders.withLock { $0.note(moment, tolerating: times.lease / 10) }
        return zip(wishes, elements.dropFirst(3)).map { wish, element in
          Result { try finding(element, of: wish, in: epoch, at: moment) }
        }
      } catch {
        return wishes.map { _ in .failure(error) }
      }
    }
  }

  /// Returns a wish as the script reads it.
  private func text(of wish: KeyedWish, _ tags: inout TagNumbers) -> String {
    let (key, wish) = wish
    let takesLease = wish.takesLease ? "1" : "0"
    let over = holders.withLock { $0.over(key, at: .now) }
    guard wish.newerThan != nil || wish.awaited != nil || over != nil || !wish.tags.isEmpty else {
      return takesLease
    }
    let (lease, renewal) = over ?? (0, 0)
    let epoch = wish.newerThan?.tierEpoch.description ?? ""
    let token = wish.newerThan?.token ?? 0
    return """
      \(takesLease) \(epoch) \(token) \(wish.awaited?.token ?? 0) \(lease):\(renewal) \
      \(tags.numbers(of: wish.tags.lazy.map(\.name)))
      """
  }

  /// The tags of the keys of one call, each of them once.
  private struct TagNumbers {
    private(set) var names: [String] = []
    private var indices: [String: Int] = [:]

    /// Returns the numbers of some tags, from 1, as a script reads them.
    mutating func numbers(of tags: some Sequence<String>) -> String {
      tags.map { tag in
        if let index = indices[tag] { return "\(index)" }
        names.append(tag)
        indices[tag] = names.count
        return "\(names.count)"
      }.joined(separator: " ")
    }
  }

  private func finding(
    _ value: RESPValue,
    of wish: KeyedWish,
    in epoch: TierEpoch,
    at moment: LeaseHoldersState<ContinuousClock.Instant>.Moment
  ) throws -> TierFinding {
    if let bytes = value.bytes { return .entry(try foundEntry(bytes, in: epoch)) }
    guard let parts = value.elements, let kind = parts.first?.text else {
      throw TierError.unexpectedReply
    }
    func previous(_ index: Int) -> TierEntry? { entry(parts[index], in: epoch) }
    switch (kind, parts.count) {
    case ("nothing", 2):
      return .nothing(previous: previous(1))
    case ("granted", 3):
      guard let token = token(parts[1]) else { throw TierError.unexpectedReply }
      holders.withLock { $0.end(wish.key) }
      let version = SharedCache.Version(epoch, token: token)
      return .granted(SharedCache.Lease(key: wish.key, version: version), previous: previous(2))
    case ("busy", 6):
      guard let token = token(parts[1]), let length = parts[2].integer, length > 0,
        let renewal = parts[4].integer, renewal >= 0, let rest = parts[5].integer
      else { throw TierError.unexpectedReply }
      let remaining = holders.withLock {
        let (length, rest) = (Duration.milliseconds(length), Duration.milliseconds(rest))
        return $0.note((token, renewal), of: wish.key, lasting: length, for: rest, at: moment)
      }
      let version = SharedCache.Version(epoch, token: token)
      return .busy(version, remaining: remaining, previous: previous(3))
    case ("failed", 2) where wish.value.awaited?.token ?? 0 > 0:
      return .failedElsewhere(payload: parts[1].bytes ?? [])
    default:
      throw TierError.unexpectedReply
    }
  }

  /// Reads a former entry: its token, its age in milliseconds and its payload; `nil` if there is none.
  private func entry(_ value: RESPValue, in epoch: TierEpoch) -> TierEntry? {
    guard let fields = value.elements, fields.count == 3, let token = token(fields[0]),
      let age = fields[1].integer, let payload = fields[2].bytes
    else { return nil }
    return TierEntry(
      version: SharedCache.Version(epoch, token: token),
      age: .milliseconds(age),
      payload: payload
    )
  }

  /// Reads an entry: its token, its age in milliseconds and its payload, with spaces in between.
  private func foundEntry(_ bytes: [UInt8], in epoch: TierEpoch) throws -> TierEntry {
    guard let first = bytes.firstIndex(of: UInt8(ascii: " ")),
      let second = bytes[(first + 1)...].firstIndex(of: UInt8(ascii: " ")),
      let token = token(.string(Array(bytes[..<first]))),
      let age = UInt64(decimal: bytes[(first + 1)..<second])
    else { throw TierError.unexpectedReply }
    return TierEntry(
      version: SharedCache.Version(epoch, token: token),
      age: .milliseconds(age),
      payload: Array(bytes[(second + 1)...])
    )
  }

  /// Stores a value that was fetched under a lease, and releases the lease.
  ///
  /// - Parameters:
  ///   - payload: The value.
  ///   - lease: The lease.
  ///   - tags: The tags of the key, as in the look that granted the lease.
  ///   - lifetime: The time after which the entry is not used; `nil` for no limit.
  ///   - other: The way of the commands, if it is not that of the announcements.
  /// - Returns: Whether the value was stored.
  /// - Throws: An error of the connection.
  func fill(
    _ payload: [UInt8],
    under lease: SharedCache.Lease,
    tags: [String] = [],
    lifetime: Duration? = nil,
    on other: Route? = nil
  ) async throws -> SharedCache.Fill {
    let key = lease.key
    let reply = try await TierScripts.fill.run(
      on: other ?? route,
      keys: heads + [names.entry(key), names.lease(key), names.fetch(key)]
        + tags.map { names.tag($0) },
      [
        .text(lease.version.tierEpoch.description), number(lease.version.token), .text(holder),
        .text(names.schema), .data(payload), retention(of: lifetime),
      ]
    )
    return switch reply.text {
    case "stored": .stored
    case "cleared": .cleared
    case "superseded": .superseded
    default: throw TierError.unexpectedReply
    }
  }

  /// Returns whether an entry is the one that this node has just stored, and announces its changes from now on.
  ///
  /// - Parameters:
  ///   - version: Its version.
  ///   - key: The key.
  /// - Returns: Whether it is there.
  /// - Throws: An error of the connection.
  func confirms(_ version: SharedCache.Version, of key: String) async throws -> Bool {
    let reply = try await route.send(
      RedisCommand("HMGET", [.text(names.entry(key)), "e", "v", "o"])
    )
    guard let fields = reply.elements, fields.count == 3 else { throw TierError.unexpectedReply }
    return fields[0].text == version.tierEpoch.description && fields[1].text == "\(version.token)"
      && fields[2] == .null
  }

  /// Returns whether the server answers.
  ///
  /// - Parameter other: The way of the commands, if it is not that of the announcements.
  /// - Returns: Whether it does.
  /// - Throws: An error of the connection.
  func answers(on other: Route? = nil) async throws -> Bool {
    // A command for which the user of the engine has the right.
    try await (other ?? route).send(epochReading).elements != nil
  }

  /// A value that did not come from a fetch.
  struct Stored: Sendable {
    let key: String
    let payload: [UInt8]
    /// The tags of the key.
    var tags: [String] = []
    /// The time after which the entry is not used; `nil` for no limit.
    var lifetime: Duration?
    /// The token since which the key must not have changed; `nil` if the value is stored in any case.
    var unchangedSince: UInt64?
    /// The name of the cache that stores the value, and the number of the value in it.
    var id: String?
  }

  /// Stores values that did not come from a fetch; a fetch in progress stores nothing.
  ///
  /// The entries of the same keys in other schemas serve as fallbacks only.
  ///
  /// - Parameters:
  ///   - values: The values.
  ///   - required: The number of the epoch that they belong to: in another one they are not stored.
  ///   - other: The way of the commands, if it is not that of the announcements.
  /// - Returns: The version of the last one; `nil` if it was not stored.
  /// - Throws: ``TierFailures`` with the keys whose values may not be stored; ``TierError/changed`` for values that are not,
  ///   because their keys can have changed.
  @discardableResult
  func store(
    _ values: [Stored],
    requiring required: UInt64? = nil,
    on other: Route? = nil
  ) async throws -> SharedCache.Version? {
    let parts = await run(TierScripts.store, inAllSchemasFor: values, on: other) {
      call(toStore: $0, in: $1, requiring: required)
    }
    var version: SharedCache.Version?
    var changed: [String: any Error] = [:]
    do {
      try check(parts, \.key) { values, reply in
        guard let elements = reply.elements, let first = elements.first, let epoch = note(first)
        else {
          throw TierError.unexpectedReply
        }
        // Everything was removed since: a cache has to know of it.
        for value in values where elements.count == 1 && value.id != nil {
          changed[value.key] = TierError.changed
        }
        for (value, element) in zip(values, elements.dropFirst()) {
          guard let token = token(element) else { throw TierError.unexpectedReply }
          if token == 0 { changed[value.key] = TierError.changed }
          version = token == 0 ? nil : SharedCache.Version(epoch, token: token)
        }
      }
    } catch let error as TierFailures {
      changed.merge(error.errors) { _, failure in failure }
    }
    if !changed.isEmpty { throw TierFailures(errors: changed) }
    return version
  }

  private func call(
    toStore values: ArraySlice<Stored>,
    in schemas: [String],
    requiring required: UInt64?
  ) -> RedisScript.Call {
    var tags = TagNumbers()
    var call = RedisScript.Call(
      keys: heads,
      arguments: knowledge + [
        .text(list(schemas)), .number(Int64(schemas.count)),
        .text(required.map { "\($0)" } ?? ""), .number(Int64(values.count)),
      ]
    )
    for value in values {
      for schema in schemas {
        call.keys += [names.entry(value.key, in: schema), names.lease(value.key, in: schema)]
      }
      call.arguments += [
        .data(value.payload), retention(of: value.lifetime), .text(tags.numbers(of: value.tags)),
        .text(value.unchangedSince.map { "\($0)" } ?? ""), .text(value.id ?? ""),
      ]
    }
    call.keys += tags.names.map { names.tag($0) }
    return call
  }
}
