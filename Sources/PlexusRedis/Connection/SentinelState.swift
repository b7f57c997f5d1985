/// The sentinels of a master, and what they say about it.
///
/// Sentinels are not trusted: a reply that is not an address is an error, and so is a name that they do not know.
struct SentinelState: Sendable {
  /// The channel on which sentinels announce another master.
  static let channel = "+switch-master"
  /// The largest memory for a reply of a sentinel, in bytes.
  static let largestReply = 64 << 10
  private static let longestHost = 255

  let name: String
  let addresses: [RedisAddress]
  /// The one to ask first: the last that has answered.
  private var first = 0

  /// - Throws: An error if there is no sentinel, or an address cannot be that of one.
  init(name: String, _ addresses: [RedisAddress]) throws(RedisConnectionError) {
    guard !addresses.isEmpty else {
      throw .misconfigured(reason: "The address of the master \(name) needs at least one sentinel.")
    }
    for address in addresses {
      switch address {
      case .tcp, .tls, .unix: continue
      case .sentinel, .cluster:
        throw .misconfigured(
          reason: "The sentinels of the master \(name) need addresses of their own, such as .tcp."
        )
      }
    }
    (self.name, self.addresses) = (name, addresses)
  }

  /// The sentinels in the order in which they are asked.
  var order: [RedisAddress] { Array(addresses[first...] + addresses[..<first]) }

  /// The command that asks for the master.
  var question: RedisCommand {
    RedisCommand("SENTINEL", ["GET-MASTER-ADDR-BY-NAME", .text(name)])
  }

  /// Takes the reply to ``question``.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - sentinel: The address of the sentinel; `nil` for the one that was asked last.
  /// - Returns: The address of the master.
  /// - Throws: The reason why there is none.
  mutating func answer(
    _ reply: RESPValue,
    from sentinel: RedisAddress?
  ) throws(RedisConnectionError) -> RedisAddress {
    let sentinel = sentinel ?? addresses[first]
    switch reply {
    case .null:
      throw .misconfigured(
        reason: """
          The sentinel at \(sentinel) has no master with the name \(name). Check the name in \
          .sentinel(name:_:), and SENTINEL MONITOR in its configuration.
          """
      )
    case .error(let error):
      throw .refused(address: sentinel, error)
    case .array(let parts) where parts.count == 2:
      guard let host = parts[0].bytes, let port = parts[1].bytes,
        let address = Self.address(host[...], port[...], like: sentinel)
      else { throw Self.noAddress(sentinel) }
      first = addresses.firstIndex(of: sentinel) ?? first
      return address
    default:
      throw Self.noAddress(sentinel)
    }
  }

  /// Takes a message of ``channel``: the name, the address before and the new one.
  ///
  /// - Returns: The address of the master, if it is the one with the name.
  func hear(_ message: [UInt8]) -> RedisAddress? {
    let parts = message.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0].elementsEqual(name.utf8),
      let address = Self.address(parts[3], parts[4], like: addresses[first])
    else { return nil }
    return address
  }

  private static func noAddress(_ sentinel: RedisAddress) -> RedisConnectionError {
    .unreachable(address: sentinel, reason: "the sentinel gave no address of a master")
  }

  /// Reads an address that a sentinel has sent.
  private static func address(
    _ host: ArraySlice<UInt8>,
    _ port: ArraySlice<UInt8>,
    like sentinel: RedisAddress
  ) -> RedisAddress? {
    guard (1...longestHost).contains(host.count), host.allSatisfy({ (0x21...0x7E).contains($0) }),
      let port = UInt16(decimal: port), port > 0
    else { return nil }
    return sentinel.sibling(host: String(decoding: host, as: UTF8.self), port: port)
  }
}
