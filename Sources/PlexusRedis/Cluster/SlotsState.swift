/// The servers of a cluster, and the slots that its masters have, as far as they are known.
///
/// A server of the cluster says which master has which slots. A redirection corrects one of them.
struct SlotsState: Sendable {
  /// The number of slots.
  static let count = 16_384
  /// The largest memory for the reply of a server, in bytes.
  static let largestReply = 16 << 20
  /// The number of servers of a cluster.
  static let serverLimit = 1_024
  private static let longestHost = 255
  /// The number of times that one server is asked without learning anything.
  private static let patience = 4

  private let seeds: [RedisAddress]
  private(set) var masters: [RedisAddress] = []
  private var replicas: [RedisAddress] = []
  /// The place of the master of each slot in the list, below zero for none.
  private var owners: [Int16] = []
  /// The number of times that a server was asked without learning anything.
  private var turns = 0

  /// - Throws: An error if there is no server, or an address cannot be that of one.
  init(_ seeds: [RedisAddress]) throws(RedisConnectionError) {
    guard !seeds.isEmpty else {
      throw .misconfigured(reason: "The address .cluster needs at least one server.")
    }
    for seed in seeds {
      switch seed {
      case .tcp, .tls: continue
      case .unix, .sentinel, .cluster:
        throw .misconfigured(
          reason:
            "The servers of .cluster need addresses of their own, such as .tcp: \(seed) is none."
        )
      }
    }
    self.seeds = seeds
  }

  /// Returns the slot of a key, which depends on the text in its first braces, if there is one.
  ///
  /// The number is the CRC16 of the text in its form for XMODEM, as the specification of Redis Cluster demands.
  static func slot(of key: String) -> Int {
    let bytes = key.utf8
    var text = bytes[...]
    if let open = bytes.firstIndex(of: UInt8(ascii: "{")) {
      let rest = bytes[bytes.index(after: open)...]
      if let close = rest.firstIndex(of: UInt8(ascii: "}")), close > rest.startIndex {
        text = rest[..<close]
      }
    }
    var sum: UInt16 = 0
    for byte in text {
      sum ^= UInt16(byte) << 8
      for _ in 0..<8 { sum = sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
    }
    return Int(sum) % count
  }

  /// Returns the master of a slot, if it is known.
  func master(of slot: Int) -> RedisAddress? {
    guard owners.indices.contains(slot), owners[slot] >= 0 else { return nil }
    return masters[Int(owners[slot])]
  }

  /// Whether no master is known.
  var isEmpty: Bool { masters.isEmpty }

  /// The servers in the order in which they are asked.
  var servers: [RedisAddress] {
    var known: Set<RedisAddress> = []
    let all = (seeds + masters + replicas).filter { known.insert($0).inserted }
    let first = turns / Self.patience % all.count
    return Array(all[first...] + all[..<first])
  }

  /// Notes that a server said nothing new: after some times, another one comes first.
  mutating func turn() { turns &+= 1 }

  /// Notes that a master has a slot.
  ///
  /// - Returns: Whether that was not known.
  /// - Throws: An error if the cluster has more servers than one can have.
  mutating func move(_ slot: Int, to master: RedisAddress) throws(RedisConnectionError) -> Bool {
    guard self.master(of: slot) != master else { return false }
    if owners.isEmpty { owners = Array(repeating: -1, count: Self.count) }
    owners[slot] = Int16(try place(of: master))
    return true
  }

  /// Notes that the master of a slot is not known any longer.
  mutating func forget(_ slot: Int) {
    if owners.indices.contains(slot) { owners[slot] = -1 }
  }

  private mutating func place(of master: RedisAddress) throws(RedisConnectionError) -> Int {
    if let known = masters.firstIndex(of: master) { return known }
    guard masters.count < Self.serverLimit else { throw Self.tooManyServers(at: seeds[0]) }
    masters.append(master)
    return masters.count - 1
  }

  /// Takes the reply to `CLUSTER SLOTS`: ranges of slots with their servers, the master first.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - server: The server that has answered, whose map can be an old one.
  ///   - answering: The masters that answer: they keep their slots, since each sends commands elsewhere itself as soon as
  ///     it has a slot no longer.
  ///   - doubted: The slots that they do not keep.
  /// - Returns: Whether a slot has another master than before.
  /// - Throws: The reason why the reply is none.
  mutating func learn(
    _ reply: RESPValue,
    from server: RedisAddress,
    keeping answering: Set<RedisAddress> = [],
    except doubted: Set<Int> = []
  ) throws(RedisConnectionError) -> Bool {
    var new = self
    (new.masters, new.replicas) = ([], [])
    new.owners = Array(repeating: -1, count: Self.count)
    // A server that has left the cluster knows no master: what others have said stays.
    guard let ranges = reply.elements, (1...Self.count).contains(ranges.count) else {
      throw Self.noMap(from: server)
    }
    var known: Set<RedisAddress> = []
    for range in ranges {
      guard let parts = range.elements, (3...Self.serverLimit + 2).contains(parts.count),
        let first = parts[0].integer, let last = parts[1].integer,
        0 <= first, first <= last, last < Int64(Self.count),
        let master = Self.address(parts[2], from: server)
      else { throw Self.noMap(from: server) }
      let place = Int16(try new.place(of: master))
      for slot in Int(first)...Int(last) { new.owners[slot] = place }
      for part in parts.dropFirst(3) {
        guard let replica = Self.address(part, from: server), known.insert(replica).inserted else {
          continue
        }
        new.replicas.append(replica)
      }
      guard new.replicas.count <= Self.serverLimit else { throw Self.tooManyServers(at: server) }
    }
    try new.keep(masters.indices.filter { answering.contains(masters[$0]) }, of: self, doubted)
    defer { self = new }
    return !new.hasSameMasters(as: self)
  }

  /// Takes the slots of some masters from an older map.
  private mutating func keep(
    _ kept: [Int],
    of old: SlotsState,
    _ doubted: Set<Int>
  ) throws(RedisConnectionError) {
    for index in kept {
      let place = Int16(try place(of: old.masters[index]))
      for slot in old.owners.indices where old.owners[slot] == index && !doubted.contains(slot) {
        owners[slot] = place
      }
    }
  }

  /// Returns whether a server is the master of a slot.
  func isMaster(_ server: RedisAddress) -> Bool {
    masters.firstIndex(of: server).map { owners.contains(Int16($0)) } ?? false
  }

  /// Returns whether each slot has the same master.
  func hasSameMasters(as other: SlotsState) -> Bool {
    if masters == other.masters { return owners == other.owners }
    return (0..<Self.count).allSatisfy { master(of: $0) == other.master(of: $0) }
  }

  /// Reads a server: its host, its port, its name, and pairs of further words.
  ///
  /// The host of a server whose name is not known is its number, which is among the words.
  private static func address(_ value: RESPValue, from server: RedisAddress) -> RedisAddress? {
    guard let parts = value.elements, parts.count >= 2, let number = parts[1].integer,
      let port = UInt16(exactly: number), port > 0
    else { return nil }
    var bytes = parts[0].bytes ?? []
    if bytes.elementsEqual("?".utf8), parts.count > 3, let words = parts[3].elements,
      let index = words.firstIndex(where: { $0.text == "ip" }), index + 1 < words.count,
      let number = words[index + 1].bytes
    {
      bytes = number
    }
    return host(bytes).map { address($0, port, from: server) }
  }

  /// Returns the address of a server.
  ///
  /// An empty host is that of the server that has answered, and so is one that is not known.
  static func address(_ host: String, _ port: UInt16, from server: RedisAddress) -> RedisAddress {
    server.sibling(host: host.isEmpty || host == "?" ? server.host : host, port: port)
  }

  /// Reads a host that a server has sent.
  static func host(_ bytes: some Collection<UInt8>) -> String? {
    guard bytes.count <= longestHost, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func noMap(from server: RedisAddress) -> RedisConnectionError {
    .unreachable(address: server, reason: "the server did not say which masters have the slots")
  }

  static func tooManyServers(at server: RedisAddress) -> RedisConnectionError {
    .unreachable(address: server, reason: "the cluster names more than \(serverLimit) servers")
  }
}
