internal import PlexusSupport

/// The sentinels of a master, which the connections of an engine share.
final class Sentinels: Sendable {
  let name: String
  let addresses: [RedisAddress]
  private let state: Locked<SentinelState>

  init(name: String, _ addresses: [RedisAddress]) throws(RedisConnectionError) {
    let state = try SentinelState(name: name, addresses)
    (self.name, self.addresses) = (name, addresses)
    self.state = Locked(state)
  }

  var order: [RedisAddress] { state.withLock { $0.order } }

  var question: RedisCommand { state.withLock { $0.question } }

  func answer(
    _ reply: RESPValue,
    from sentinel: RedisAddress?
  ) throws(RedisConnectionError) -> RedisAddress {
    let result = state.withLock { state -> Result<RedisAddress, RedisConnectionError> in
      do throws(RedisConnectionError) {
        return .success(try state.answer(reply, from: sentinel))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  func hear(_ message: [UInt8]) -> RedisAddress? {
    state.withLock { $0.hear(message) }
  }
}
