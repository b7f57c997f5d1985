internal import Plexus
internal import PlexusSupport

/// One space of the engine for one node: entries, leases and the epoch.
///
/// A change of a key is one script, so that no other node sees half of it. It decides nothing that depends on the clock
/// of a node.
final class Tier: Sendable {
  /// The lengths of time that the engine works with.
  struct Times: Sendable {
    /// The time after which a lease ends unless it is renewed.
    var lease: Duration = .seconds(3)
    /// The longest time after which an entry is removed if nothing replaces it.
    var retention: Duration = .seconds(7 * 86_400)
    /// The time for which callers that wait for a fetch are given its failure: a slow process can look as late as a lease
    /// allows.
    var failure: Duration { min(max(lease, .seconds(5)), .seconds(60)) }

    init() {}
  }

  /// A key, and the requirements of a look for it.
  typealias KeyedWish = [String: SharedCache.Wish].Element

  let names: TierNames
  let node: String
  /// The node as its leases name it, with their length.
  private let holder: String
  private let times: Times
  let connection: RedisConnection
  let readers = Locked(Readers())
  /// The command that reads the epoch and the number of tokens.
  let epochReading: RedisCommand
  /// The knowledge of this node, which grows with each reply.
  private struct Knowledge: Sendable {
    /// The highest epoch that it has seen.
    var epoch: TierEpoch? {
      didSet { text = epoch?.description ?? "" }
    }
    /// The epoch as the engine has it, nothing for none.
    private(set) var text = ""
    /// The highest token that it has seen.
    var token: UInt64 = 0
    /// The schemas of the space, as names contain them; its own comes first.
    var schemas: [String]
    /// The source of nonces, whose start no other node has.
    var nonces = UInt64.random(in: .min ... .max)

    /// Returns a nonce, each time another one.
    mutating func nonce() -> UInt64 {
      nonces &+= 1
      return nonces
    }
  }

  private let known: Locked<Knowledge>
  private let holders = Locked(LeaseHoldersState<ContinuousClock.Instant>())

  /// - Parameters:
  ///   - space: The name of the space.
  ///   - schema: The version of the format of payloads, which has entries and leases of its own.
  ///   - node: The name of this node, which no other has.
  ///   - connection: The connection.
  ///   - times: The lengths of time.
  init(
    space: String,
    schema: String,
    node: String,
    connection: RedisConnection,
    times: Times = Times()
  ) {
    names = TierNames(space: space, schema: schema)
    known = Locked(Knowledge(schemas: [names.schema]))
    epochReading = RedisCommand("MGET", [.text(names.epoch), .text(names.tokens)])
    self.node = node
    holder = "\(node)/\(Self.milliseconds(times.lease))"
    self.connection = connection
    self.times = times
  }

  /// The time for which a lease lasts.
  var leaseTime: Duration { times.lease }

  /// The highest epoch that this node has seen.
  var epoch: TierEpoch? { known.withLock { $0.epoch } }

  /// The highest epoch that this node has seen, as the engine has it, and the highest token.
  var newest: (epoch: TierEpoch?, text: String, token: UInt64) {
    known.withLock { ($0.epoch, $0.text, $0.token) }
  }

  /// The schemas that this node knows of, as names contain them; its own comes first.
  var schemas: [String] { known.withLock { $0.schemas } }

  // MARK: - Entries

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
    func entry(_ index: Int) -> TierEntry? {
      guard index < parts.count, let fields = parts[index].elements, fields.count == 3,
        let token = token(fields[0]), let age = fields[1].integer, let payload = fields[2].bytes
      else { return nil }
      return TierEntry(
        version: SharedCache.Version(epoch, token: token),
        age: .milliseconds(age),
        payload: payload
      )
    }
    switch (kind, parts.count) {
    case ("nothing", 2):
      return .nothing(previous: entry(1))
    case ("granted", 3):
      guard let token = token(parts[1]) else { throw TierError.unexpectedReply }
      holders.withLock { $0.end(wish.key) }
      let version = SharedCache.Version(epoch, token: token)
      return .granted(SharedCache.Lease(key: wish.key, version: version), previous: entry(2))
    case ("busy", 6):
      guard let token = token(parts[1]), let length = parts[2].integer, length > 0,
        let renewal = parts[4].integer, renewal >= 0, let rest = parts[5].integer
      else { throw TierError.unexpectedReply }
      let remaining = holders.withLock {
        $0.note(
          (token, renewal),
          of: wish.key,
          lasting: .milliseconds(length),
          for: .milliseconds(rest),
          at: moment
        )
      }
      return .busy(
        SharedCache.Version(epoch, token: token),
        remaining: remaining,
        previous: entry(3)
      )
    case ("failed", 2) where wish.value.awaited?.token ?? 0 > 0:
      return .failedElsewhere(payload: parts[1].bytes ?? [])
    default:
      throw TierError.unexpectedReply
    }
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
  ///   - other: The connection, if it is not that of the announcements.
  /// - Returns: Whether the value was stored.
  /// - Throws: An error of the connection.
  func fill(
    _ payload: [UInt8],
    under lease: SharedCache.Lease,
    tags: [String] = [],
    lifetime: Duration? = nil,
    on other: RedisConnection? = nil
  ) async throws -> SharedCache.Fill {
    let key = lease.key
    let reply = try await TierScripts.fill.run(
      on: other ?? connection,
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
    let reply = try await connection.send(
      RedisCommand("HMGET", [.text(names.entry(key)), "e", "v", "o"])
    )
    guard let fields = reply.elements, fields.count == 3 else { throw TierError.unexpectedReply }
    return fields[0].text == version.tierEpoch.description && fields[1].text == "\(version.token)"
      && fields[2] == .null
  }

  /// Returns whether the server answers.
  ///
  /// - Parameter other: The connection, if it is not that of the announcements.
  /// - Returns: Whether it does.
  /// - Throws: An error of the connection.
  func answers(on other: RedisConnection? = nil) async throws -> Bool {
    // A command for which the user of the engine has the right.
    try await (other ?? connection).send(epochReading).elements != nil
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
  ///   - other: The connection, if it is not that of the announcements.
  /// - Returns: The version of the last one; `nil` if it was not stored.
  /// - Throws: ``TierFailures`` with the keys whose values may not be stored; ``TierError/changed`` for values that are not,
  ///   because their keys can have changed.
  @discardableResult
  func store(
    _ values: [Stored],
    requiring required: UInt64? = nil,
    on other: RedisConnection? = nil
  ) async throws -> SharedCache.Version? {
    let parts = await run(TierScripts.store, inAllSchemasFor: values, on: other) {
      values,
      schemas in
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

  // MARK: - Leases

  /// Releases leases without a value.
  ///
  /// - Parameters:
  ///   - leases: The leases; lost ones are ignored.
  ///   - failure: The failure for callers that wait for these fetches; without it one of them fetches.
  /// - Throws: An error of the connection.
  func release(_ leases: [SharedCache.Lease], because failure: [UInt8]?) async throws {
    let parts = await run(TierScripts.release, inPartsOf: leases) { leases in
      RedisScript.Call(
        keys: leases.flatMap { [names.lease($0.key), names.fetch($0.key)] },
        arguments: [.text(holder), .data(failure ?? []), milliseconds(times.failure)]
          + arguments(of: leases)
      )
    }
    for (_, reply) in parts { _ = try reply.get() }
  }

  /// Renews leases that no other node has taken over, however late.
  ///
  /// - Returns: The leases that are lost.
  func renew(_ leases: [SharedCache.Lease]) async throws -> [SharedCache.Lease] {
    let parts = await run(TierScripts.renew, inPartsOf: leases) { leases in
      RedisScript.Call(
        keys: leases.flatMap { [names.lease($0.key), names.fetch($0.key)] },
        arguments: [.text(holder), milliseconds(times.lease)] + arguments(of: leases)
      )
    }
    return try parts.flatMap { leases, reply in
      guard let lost = try reply.get().elements else { throw TierError.unexpectedReply }
      return lost.compactMap { element -> SharedCache.Lease? in
        guard let index = element.integer, (1...Int64(leases.count)).contains(index) else {
          return nil
        }
        return leases[leases.startIndex + Int(index) - 1]
      }
    }
  }

  /// Returns the leases of some keys that this node has.
  ///
  /// - Throws: An error of the connection.
  func ownLeases(of keys: some Collection<String>) async throws -> [SharedCache.Lease] {
    let replies = await connection.send(keys.map { RedisCommand("GET", [.text(names.lease($0))]) })
    return try zip(keys, replies).compactMap { key, reply in
      // A key of another type is an error that the scripts repair.
      guard let text = try reply.present()?.text else { return nil }
      let parts = text.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let epoch = TierEpoch(parts[0]), parts[1].hasPrefix("\(holder):"),
        let token = UInt64(parts[1].dropFirst(holder.count + 1))
      else { return nil }
      return SharedCache.Lease(key: key, version: SharedCache.Version(epoch, token: token))
    }
  }

  private func arguments(of leases: ArraySlice<SharedCache.Lease>) -> [RedisCommand.Argument] {
    leases.flatMap { lease in
      [.text(lease.version.tierEpoch.description), number(lease.version.token)]
        as [RedisCommand.Argument]
    }
  }

  // MARK: - Arguments

  /// A nonce for a new epoch, and the epoch and token that the engine has at least, unless it has lost data.
  var knowledge: [RedisCommand.Argument] { knowledgeWithNonce.arguments }

  /// A text that no other node has, and no earlier command of this one.
  var nonce: String { String(known.withLock { $0.nonce() }, radix: 36) }

  var knowledgeWithNonce: (nonce: String, arguments: [RedisCommand.Argument]) {
    let (number, epoch, token) = known.withLock { ($0.nonce(), $0.text, $0.token) }
    let nonce = String(number, radix: 36)
    return (nonce, [.text(nonce), .text(epoch), self.number(token)])
  }

  /// The keys that scripts with ``knowledge`` have first.
  var heads: [String] { [names.epoch, names.tokens, names.schemas] }

  /// The time after which an entry is removed.
  ///
  /// It is not shorter than a lease: the nodes that have waited for the entry need it although it is not fresh.
  private func retention(of lifetime: Duration?) -> RedisCommand.Argument {
    milliseconds(min(max(lifetime ?? times.retention, times.lease), times.retention))
  }

  func milliseconds(_ duration: Duration) -> RedisCommand.Argument {
    .number(Self.milliseconds(duration))
  }

  private static func milliseconds(_ duration: Duration) -> Int64 {
    max(1, Nanoseconds(duration) / 1_000_000)
  }

  func number(_ number: UInt64) -> RedisCommand.Argument {
    .number(Int64(clamping: number))
  }

  /// Records an epoch of the engine.
  func note(_ value: RESPValue) -> TierEpoch? {
    guard let bytes = value.bytes else { return nil }
    // Most replies have the epoch that is known.
    let known = self.known.withLock { $0.text.utf8.elementsEqual(bytes) ? $0.epoch : nil }
    if let known { return known }
    guard let epoch = TierEpoch(String(decoding: bytes, as: UTF8.self)) else { return nil }
    note(epoch)
    return epoch
  }

  private func note(_ epoch: TierEpoch) {
    known.withLock { known in
      if known.epoch.map({ $0.counter < epoch.counter }) ?? true { known.epoch = epoch }
    }
  }

  /// Records what another node of this process has seen of the space.
  func note(knowledgeOf other: Tier) {
    guard other !== self else { return }
    let (epoch, _, token) = other.newest
    if let epoch { note(epoch) }
    note(token: token)
  }

  /// Records the schemas of the space, unless they are so many that the list is damaged.
  func note(schemas list: String) {
    let found = TierNames.schemas(in: list).filter { $0 != names.schema }
    guard found.count < 1_000 else { return }
    known.withLock { $0.schemas = [names.schema] + found }
  }

  /// Records a token of the engine.
  func note(token: UInt64) {
    known.withLock { $0.token = max($0.token, token) }
  }

  /// Reads and records a token of the engine.
  ///
  /// - Returns: `nil` for a number that no engine gives. It would be sent back as one that an engine has at least.
  func token(_ value: RESPValue) -> UInt64? {
    guard let number = value.integer, (0...Int64(TierScripts.largestNumber)).contains(number) else {
      return nil
    }
    note(token: UInt64(number))
    return UInt64(number)
  }

  /// Records an epoch and a token of the engine.
  func change(_ value: RESPValue) throws -> TierMark {
    guard let elements = value.elements, elements.count >= 2, let epoch = note(elements[0]),
      let token = token(elements[1])
    else { throw TierError.unexpectedReply }
    return TierMark(epoch: epoch, fence: token)
  }
}

/// The keys, or the tags, for which an operation has failed, and its errors.
struct TierFailures: Error {
  let errors: [String: any Error]

  /// The error that speaks for all: of one that the server has not executed, if there is one.
  var worst: any Error {
    errors.values.first { !($0 is TierUnacknowledgedError) } ?? errors.values.first ?? self
  }
}

/// The reason why replicas have not acknowledged a removal that the server has executed.
struct TierUnacknowledgedError: Error {
  let reason: any Error
}

/// The reason why the tier did not carry out an operation.
enum TierError: Error, Hashable, CustomStringConvertible {
  /// A reply of the engine that no script of this version gives.
  case unexpectedReply
  /// A value was not sent within the time of a command, which other commands had.
  case tooSlow(bytes: Int)
  /// The engine has lost the registrations of nodes again and again while a removal waited for them.
  case lostRegistrations
  /// A value was not stored, because its key can have changed before.
  case changed
  /// Too few replicas have acknowledged a removal in time, which the server has executed.
  case notReplicated(acknowledged: Int, of: Int)
  /// The replicas were still waited for on behalf of earlier removals.
  case replicasBehind

  var description: String {
    switch self {
    case .unexpectedReply: "The Redis server gave a reply that does not belong to the script."
    case .tooSlow(let bytes):
      "A value of \(bytes) bytes did not reach the Redis server in time."
    case .lostRegistrations:
      "The Redis server loses the registrations of processes again and again, so a clear cannot wait for all of them."
    case .changed: "The value was not stored, because its key can have changed before."
    case .notReplicated(let acknowledged, let required):
      "\(acknowledged) replicas of the Redis server have acknowledged the removal in time; \(required) are required."
    case .replicasBehind:
      "The replicas of the Redis server have not acknowledged the removal in time, nor those before it."
    }
  }
}
