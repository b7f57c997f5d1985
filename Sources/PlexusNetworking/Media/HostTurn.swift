internal import PlexusSupport

/// The turn of one transfer at one host after the other.
///
/// A transfer that is redirected leaves the line of its host, so that a slow target does not take up the turns
/// of the host that has redirected to it.
final class HostTurn<Key: Hashable & Sendable>: Sendable {
  private let gate: HostGate<Key>
  private let key: Key
  private let host = Locked<String?>(nil)

  init(gate: HostGate<Key>, key: Key) {
    self.gate = gate
    self.key = key
  }

  /// Ends the turn at one host and waits for the turn at another.
  func move(to next: String) async throws {
    if host.withLock({ $0 == next }) { return }
    // It never holds one turn while it waits for another: two such transfers could wait for each other.
    end()
    try await gate.enter(next, for: key)
    host.withLock { $0 = next }
  }

  /// Ends the turn.
  func end() {
    if let host = host.withLock({ $0.take() }) { gate.leave(host) }
  }
}
