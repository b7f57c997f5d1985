internal import PlexusSupport

/// The state that a recorder shares with its iterating task.
final class Recording<Element: Sendable>: Sendable {
  private struct State: Leveled {
    var elements: [Element] = []
    var isClosed = false
    var isFinished = false
    var error: (any Error)?
    var levelWaiters = LevelWaiters()

    /// The number of elements, or a maximum once no further element can arrive.
    var level: Int {
      if isFinished { return .max }
      return isClosed ? .max - 1 : elements.count
    }
  }

  private let state = Locked(State())

  var elements: [Element] { state.withLock { $0.elements } }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  var error: (any Error)? { state.withLock { $0.error } }

  /// Iterates the sequence until it ends or the recording is closed.
  func record<S: AsyncSequence>(_ sequence: S?) async throws where S.Element == Element {
    guard let sequence else { return }
    for try await element in sequence {
      guard append(element) else { return }
    }
  }

  /// Waits until there are `count` elements or no more can arrive.
  func reach(_ count: Int) async {
    await state.reach(min(count, .max - 1))
  }

  /// Waits until the sequence has ended.
  func reachEnd() async {
    await state.reach(.max)
  }

  /// Stops recording further elements.
  func close() {
    state.update { $0.isClosed = true }
  }

  /// Marks the sequence as ended.
  func end(with error: (any Error)?) {
    state.update { state in
      state.isFinished = true
      state.error = error
    }
  }

  /// Adds an element unless the recording is closed.
  ///
  /// - Returns: Whether the element was added.
  private func append(_ element: Element) -> Bool {
    var isOpen = false
    state.update { state in
      guard !state.isClosed else { return }
      state.elements.append(element)
      isOpen = true
    }
    return isOpen
  }
}

/// A value that can be taken once.
final class Handover<Value: Sendable>: Sendable {
  private let value: Locked<Value?>

  init(_ value: Value) {
    self.value = Locked(value)
  }

  /// Returns the value and clears it.
  func take() -> Value? {
    value.withLock { $0.take() }
  }
}
