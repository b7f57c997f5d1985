/// The events of a test in order, written from any thread and awaited.
public final class Log<Entry: Sendable>: Sendable {
  private struct Waiter {
    let isSatisfied: @Sendable ([Entry]) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var entries: [Entry] = []
    var waiting: [Int: Waiter] = [:]
    var lastID = 0
  }

  private let state = Guarded(State())

  /// Creates an empty log.
  public init() {}

  /// The entries so far.
  public var entries: [Entry] { state.withLock { $0.entries } }

  /// The number of entries so far.
  public var count: Int { state.withLock { $0.entries.count } }

  /// Adds an entry.
  public func append(_ entry: Entry) {
    let ready = state.withLock { state -> [Int: Waiter] in
      state.entries.append(entry)
      guard !state.waiting.isEmpty else { return [:] }
      let ready = state.waiting.filter { $0.value.isSatisfied(state.entries) }
      for id in ready.keys { state.waiting[id] = nil }
      return ready
    }
    for waiter in ready.values { waiter.continuation.resume() }
  }

  /// Waits for a number of entries, or until the waiting task is cancelled.
  @discardableResult
  public func first(_ count: Int) async -> [Entry] {
    await wait { $0.count >= count }
    return Array(entries.prefix(count))
  }

  /// Waits until the entries satisfy a condition, or the waiting task is cancelled.
  public func wait(until isSatisfied: @escaping @Sendable ([Entry]) -> Bool) async {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard !isSatisfied(state.entries), !Task.isCancelled else { return false }
          state.waiting[id] = Waiter(isSatisfied: isSatisfied, continuation: continuation)
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.continuation.resume()
    }
  }
}

extension Log where Entry: Equatable {
  /// Waits for an entry.
  public func contains(_ entry: Entry) async {
    await wait { $0.last == entry || $0.contains(entry) }
  }
}
