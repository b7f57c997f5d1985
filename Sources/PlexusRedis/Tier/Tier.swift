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
  let holder: String
  let times: Times
  /// The way of the commands, and of the announcements.
  let route: Route
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
  let holders = Locked(LeaseHoldersState<ContinuousClock.Instant>())

  /// - Parameters:
  ///   - space: The name of the space.
  ///   - schema: The version of the format of payloads, which has entries and leases of its own.
  ///   - node: The name of this node, which no other has.
  ///   - route: The way of the commands.
  ///   - times: The lengths of time.
  init(
    space: String,
    schema: String,
    node: String,
    route: Route,
    times: Times = Times()
  ) {
    names = TierNames(space: space, schema: schema)
    known = Locked(Knowledge(schemas: [names.schema]))
    epochReading = RedisCommand("MGET", [.text(names.epoch), .text(names.tokens)])
    self.node = node
    holder = "\(node)/\(Self.milliseconds(times.lease))"
    self.route = route
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
  func retention(of lifetime: Duration?) -> RedisCommand.Argument {
    milliseconds(min(max(lifetime ?? times.retention, times.lease), times.retention))
  }

  func milliseconds(_ duration: Duration) -> RedisCommand.Argument {
    .number(Self.milliseconds(duration))
  }

  static func milliseconds(_ duration: Duration) -> Int64 {
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
