internal import PlexusSupport

/// The connection to a sentinel that announces another master.
///
/// Connections that break ask the sentinels by themselves. An announcement is for connections whose server hangs, or does
/// not know yet that it is no longer the master.
final class SentinelWatch: Sendable {
  private let sentinels: Sentinels
  /// Called with the address of the master at each announcement.
  private let onMaster: @Sendable (RedisAddress) -> Void
  private let connection = Locked<RedisConnection?>(nil)

  /// - Parameters:
  ///   - sentinels: The sentinels.
  ///   - settings: The settings of the engine's connections.
  ///   - onMaster: Called with the address of the master at each announcement.
  /// - Throws: An error if the process has no thread or file descriptor left.
  init(
    _ sentinels: Sentinels,
    _ settings: RedisConnection.Settings,
    onMaster: @escaping @Sendable (RedisAddress) -> Void
  ) throws {
    self.sentinels = sentinels
    self.onMaster = onMaster
    var settings = settings
    settings.name += "-sentinel"
    settings.peer = .sentinel
    settings.setup = []
    let connection = try RedisConnection(settings) { [weak self] in self?.receive($0) }
    self.connection.withLock { $0 = connection }
    subscribe()
  }

  /// Ends a connection whose sentinel does not answer.
  func probe() {
    connection.withLock { $0 }?.probe()
  }

  /// The numbers of the connection.
  var traffic: TrafficState? { connection.withLock { $0 }?.traffic }

  func close() async {
    await connection.withLock { $0 }?.close()
  }

  private func receive(_ event: RedisConnection.Event) {
    switch event {
    case .connected:
      subscribe()
    case .push(let elements):
      guard elements.count == 3, elements[0].text == "message",
        elements[1].text == SentinelState.channel, let message = elements[2].bytes,
        let master = sentinels.hear(message)
      else { return }
      onMaster(master)
    case .disconnected, .refusal:
      break
    }
  }

  private func subscribe() {
    guard let connection = connection.withLock({ $0 }) else { return }
    _ = connection.post(RedisCommand("SUBSCRIBE", [.text(SentinelState.channel)]))
    // There can have been an announcement before.
    connection.post(sentinels.question).onResult { [weak self] result in
      guard let self, case .success(let reply) = result else { return }
      do throws(RedisConnectionError) {
        onMaster(try sentinels.answer(reply, from: nil))
      } catch {
        // The sentinel does not know it.
      }
    }
  }
}
