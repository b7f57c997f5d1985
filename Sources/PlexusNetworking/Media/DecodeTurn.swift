internal import PlexusSupport

/// A decoder's share of the decodes that run at once.
///
/// A decoder that waits for another image of a loader gives its turn back meanwhile: otherwise decoders could wait
/// for turns that they hold themselves.
final class DecodeTurn: Sendable {
  @TaskLocal static var current: DecodeTurn?

  private struct State: Sendable {
    var waits = 0
    var isHeld = true
    /// Whether the decoder has returned; tasks that it has left behind need no turn.
    var hasEnded = false
  }

  private let gate: HostGate<String>
  private let key: String
  private let state = Locked(State())

  /// The one line of a gate that has no hosts.
  private static let line = ""

  private init(_ gate: HostGate<String>, _ key: String) {
    self.gate = gate
    self.key = key
  }

  /// Decodes when it is the turn of a key.
  static func run<Result>(
    at gate: HostGate<String>,
    for key: String,
    _ decode: () async throws -> Result
  ) async throws -> Result {
    try await gate.enter(line, for: key)
    let turn = DecodeTurn(gate, key)
    defer { turn.end() }
    return try await $current.withValue(turn, operation: decode)
  }

  /// Waits for another image without the turn.
  func yielding<Result>(_ wait: () async throws -> Result) async throws -> Result {
    let isFirst = state.withLock { state in
      state.waits += 1
      defer { if state.waits == 1 { state.isHeld = false } }
      return state.waits == 1 && state.isHeld
    }
    if isFirst { gate.leave(Self.line) }
    do {
      let result = try await wait()
      try await resume()
      return result
    } catch {
      try await resume()
      throw error
    }
  }

  private func resume() async throws {
    let isLast = state.withLock { state in
      state.waits -= 1
      return state.waits == 0 && !state.hasEnded
    }
    guard isLast else { return }
    try await gate.enter(Self.line, for: key)
    let isNeeded = state.withLock { state in
      let isNeeded = state.waits == 0 && !state.isHeld && !state.hasEnded
      if isNeeded { state.isHeld = true }
      return isNeeded
    }
    if !isNeeded { gate.leave(Self.line) }
  }

  private func end() {
    let isHeld = state.withLock { state in
      defer { (state.isHeld, state.hasEnded) = (false, true) }
      return state.isHeld
    }
    if isHeld { gate.leave(Self.line) }
  }
}
