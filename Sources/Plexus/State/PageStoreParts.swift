/// The parts of a state that are subscribed to by key path: one evaluation for all views of equal key paths.
@usableFromInline
final class PageStoreParts: Sendable {
  private struct Entry: Sendable {
    let id: UInt64
    let path: any AnyKeyPath & Sendable
    weak let core: (any DerivedStage)?
  }

  private struct State: Sendable {
    var entries: [Entry] = []
    /// The number of changes so far.
    var version = 0
  }

  private let state = Locked(State())

  @usableFromInline
  init() {}

  /// Returns the core that evaluates a part for all views of its key path.
  ///
  /// It stays as long as it has subscribers.
  func core<Part: Equatable & Sendable>(
    of path: any AnyKeyPath & Sendable
  ) -> DerivedCore<Part> {
    let id = UniqueID.next()
    let new = DerivedCore<Part>(
      areEqual: { $0 == $1 },
      onStop: { [weak self] in self?.remove(id) }
    )
    var attempts = 3
    while true {
      let (entries, version) = state.withLock { ($0.entries, $0.version) }
      // Comparing key paths can run user code.
      let found = entries.first { ($0.path as AnyKeyPath) == (path as AnyKeyPath) }
      if let core = found?.core as? DerivedCore<Part> { return core }
      attempts -= 1
      let isAdded = state.withLock { state in
        // A key path that is added with every comparison must not delay its subscriber without end.
        guard state.version == version || attempts == 0 else { return false }
        state.version += 1
        state.entries.append(Entry(id: id, path: path, core: new))
        return true
      }
      guard isAdded else { continue }
      if let found { remove(found.id) }
      return new
    }
  }

  /// Removes a core that has lost its last subscriber.
  private func remove(_ id: UInt64) {
    // Key paths can hold user objects, which are released with no lock held.
    state.release { state -> Entry? in
      guard let index = state.entries.firstIndex(where: { $0.id == id }) else { return nil }
      state.version += 1
      return state.entries.remove(at: index)
    }
  }
}
