internal import Plexus
internal import PlexusSupport

/// A closure that returns a text.
///
/// It is called while a page shows its text, once at a time: a slow one delays no other source.
final class TextSource: InspectedSource {
  private struct State: Sendable {
    var snapshot: (@concurrent @Sendable () async -> String)?
    var text: String?
    var time: Double?
    var call: Task<Void, Never>?
    /// The time of the last call, of whichever page.
    var lastCall: Duration?
  }

  private static let limit = 20_000
  /// The time between calls, however often a page connects.
  private static let pause = Duration.milliseconds(250)

  private let state: Locked<State>

  init(_ snapshot: @escaping @concurrent @Sendable () async -> String) {
    state = Locked(State(snapshot: snapshot))
  }

  var kind: SourceKind { .text }

  func stop() {
    let released = state.withLock { state in
      defer { (state.snapshot, state.call) = (nil, nil) }
      return (state.snapshot, state.call)
    }
    released.1?.cancel()
  }

  func prepare(at time: Duration) {
    state.withLock { state in
      guard state.call == nil, let snapshot = state.snapshot else { return }
      if let lastCall = state.lastCall, time - lastCall < Self.pause { return }
      state.lastCall = time
      state.call = Task.detached(priority: .utility) { [weak self] in
        let text = await snapshot().shortened(to: Self.limit)
        self?.finish(text)
      }
    }
  }

  private func finish(_ text: String) {
    let time = wallClockTime().seconds
    let released = state.withLock { state in
      defer { (state.text, state.time, state.call) = (text, time, nil) }
      return state.call
    }
    withExtendedLifetime(released) {}
  }

  var numbers: JSON? { state.withLock { $0.snapshot == nil ? nil : .object([]) } }

  func details(since revision: Int) -> (JSON, revision: Int) {
    let (text, time) = state.withLock { ($0.text, $0.time) }
    return (["text": .text(text), "time": time.map(JSON.decimal) ?? .null], 0)
  }
}
