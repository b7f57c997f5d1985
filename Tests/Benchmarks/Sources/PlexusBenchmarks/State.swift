import Plexus
import Synchronization

/// A state with many parts.
struct Cells: Sendable {
  static let count = 1000

  var values = [Int](repeating: 0, count: count)

  /// Changes ten of the parts, which depend on the number.
  mutating func touch(_ number: Int) {
    for offset in 0..<10 { values[(number * 10 + offset) % Cells.count] += 1 }
  }
}

/// Rows for the time from the dispatch of an action until all affected subscribers have received it.
///
/// The goals of the rows with few subscribers only prevent regressions: their peer is a plain lock.
func stateComparisons() -> [Comparison] {
  [selectors(areStreams: false), selectors(areStreams: true)]
    + [(0, 0.1), (1, 0.5), (1000, 50)].map { dispatches(subscribers: $0, goal: $1) }
    + [selectedPart(changes: false, goal: 50), selectedPart(changes: true, goal: 50)]
    + [valueReads(), valueUpdates()]
}

/// The peer of a store: a state behind a lock and a stream for each subscriber.
private final class HandWrittenStore<State: Sendable, Action: Sendable>: Sendable {
  private struct Guarded {
    var state: State
    var last = 0
    var continuations: [Int: AsyncStream<State>.Continuation] = [:]
  }

  private let guarded: Mutex<Guarded>
  private let reducer: @Sendable (inout State, Action) -> Void

  init(_ state: State, reducer: @escaping @Sendable (inout State, Action) -> Void) {
    guarded = Mutex(Guarded(state: state))
    self.reducer = reducer
  }

  func subscribe(bufferingPolicy: BufferingPolicy<State>) -> AsyncStream<State> {
    let (stream, continuation) = AsyncStream<State>.makeStream(bufferingPolicy: bufferingPolicy)
    let (id, state) = guarded.withLock { guarded in
      guarded.last += 1
      guarded.continuations[guarded.last] = continuation
      return (guarded.last, guarded.state)
    }
    continuation.yield(state)
    continuation.onTermination = { [weak self] _ in
      _ = self?.guarded.withLock { $0.continuations.removeValue(forKey: id) }
    }
    return stream
  }

  func dispatch(_ action: Action) {
    let (state, continuations) = guarded.withLock { guarded in
      reducer(&guarded.state, action)
      return (guarded.state, guarded.continuations)
    }
    for continuation in continuations.values { continuation.yield(state) }
  }

  func finish() {
    for continuation in guarded.withLock({ $0.continuations }).values { continuation.finish() }
  }
}

/// A row with 1,000 loops, each of which follows one part of a state; each action changes 10 parts.
private func selectors(areStreams: Bool) -> Comparison {
  let actions = 1000
  return Comparison(
    name: areStreams ? "store/changes(of:)/1000" : "store/selectors/1000",
    peer: "state streams with select and dedupe",
    goal: 90,
    ours: {
      var store: Store<Cells, Int>? = Store(Cells()) { $0.touch($1) }
      let loops = (0..<Cells.count).compactMap { index in
        store.map { store in
          if areStreams {
            let changes = store.changes(of: { $0.values[index] })
            return Task { await changes.reduce(0) { sum, _ in sum + 1 } }
          }
          let changes = store.subscription(toChangesOf: { $0.values[index] })
          return Task {
            var count = 0
            for await _ in changes { count += 1 }
            return count
          }
        }
      }
      return await nanoseconds(per: actions) {
        for number in 0..<actions { store?.dispatch(number) }
        store = nil
        var sum = 0
        for loop in loops { sum += await loop.value }
        precondition(sum == Cells.count + 10 * actions)
      }
    },
    theirs: {
      let store = HandWrittenStore<Cells, Int>(Cells()) { $0.touch($1) }
      let loops = (0..<Cells.count).map { index in
        let states = store.subscribe(bufferingPolicy: .unbounded)
        return Task {
          var count = 0
          var last: Int?
          for await state in states where state.values[index] != last {
            last = state.values[index]
            count += 1
          }
          return count
        }
      }
      return await nanoseconds(per: actions) {
        for number in 0..<actions { store.dispatch(number) }
        store.finish()
        var sum = 0
        for loop in loops { sum += await loop.value }
        precondition(sum == Cells.count + 10 * actions)
      }
    }
  )
}

/// Waits until all loops have ended, each with the newest number.
private func wait(for loops: [Task<Int, Never>], newest: Int) async {
  for loop in loops {
    let last = await loop.value
    precondition(last == newest)
  }
}

/// A row with loops that read the newest state after each action.
private func dispatches(subscribers: Int, goal: Double) -> Comparison {
  let actions = subscribers > 100 ? 1000 : 100_000
  return Comparison(
    name: "store/dispatch/\(subscribers)",
    peer: "store with a stream a subscriber",
    goal: goal,
    ours: {
      var store: Store<Int, Int>? = Store(0) { $0 += $1 }
      let loops = (0..<subscribers).compactMap { _ in
        store.map { store in
          let states = store.subscription()
          return Task {
            var newest = 0
            for await state in states { newest = state }
            return newest
          }
        }
      }
      return await nanoseconds(per: actions) {
        for _ in 0..<actions { store?.dispatch(1) }
        store = nil
        await wait(for: loops, newest: actions)
      }
    },
    theirs: {
      let store = HandWrittenStore<Int, Int>(0) { $0 += $1 }
      let loops = (0..<subscribers).map { _ in
        let states = store.subscribe(bufferingPolicy: .bufferingNewest(1))
        return Task {
          var newest = 0
          for await state in states { newest = state }
          return newest
        }
      }
      return await nanoseconds(per: actions) {
        for _ in 0..<actions { store.dispatch(1) }
        store.finish()
        await wait(for: loops, newest: actions)
      }
    }
  )
}

/// A row with 1,000 loops that read the newest value of one selected part after each action.
private func selectedPart(changes: Bool, goal: Double) -> Comparison {
  let actions = 1000
  let loopCount = 1000
  return Comparison(
    name: "store/select/1000/\(changes ? "changes" : "stays")",
    peer: "state streams with select and dedupe",
    goal: goal,
    ours: {
      var store: Store<Cells, Int>? = Store(Cells()) { $0.values[changes ? 0 : 1] += $1 }
      func subscriptions() -> [Subscription<Int>] {
        guard let part = store?.select(\.values[0]) else { return [] }
        return (0..<loopCount).map { _ in part.subscription(bufferingPolicy: .bufferingNewest(1)) }
      }
      let loops = subscriptions().map { parts in
        Task {
          var newest = 0
          for await part in parts { newest = part }
          return newest
        }
      }
      return await nanoseconds(per: actions) {
        for _ in 0..<actions { store?.dispatch(1) }
        store = nil
        await wait(for: loops, newest: changes ? actions : 0)
      }
    },
    theirs: {
      let store = HandWrittenStore<Cells, Int>(Cells()) { $0.values[changes ? 0 : 1] += $1 }
      let loops = (0..<loopCount).map { _ in
        let states = store.subscribe(bufferingPolicy: .bufferingNewest(1))
        return Task {
          var newest: Int?
          for await state in states where state.values[0] != newest { newest = state.values[0] }
          return newest ?? 0
        }
      }
      return await nanoseconds(per: actions) {
        for _ in 0..<actions { store.dispatch(1) }
        store.finish()
        await wait(for: loops, newest: changes ? actions : 0)
      }
    }
  )
}

private let valuesInARun = 2_000_000

/// A state behind a lock, the peer of a current value without subscribers.
private final class LockedNumber: Sendable {
  let number = Mutex(1)
}

private func valueReads() -> Comparison {
  Comparison(
    name: "value/read",
    peer: "Mutex<Int>",
    goal: 0.5,
    ours: {
      let value = CurrentValue(1)
      return await nanoseconds(per: valuesInARun) {
        var sum = 0
        for _ in 0..<valuesInARun { sum &+= value.value }
        precondition(sum == valuesInARun, "There was another value")
      }
    },
    theirs: {
      let value = LockedNumber()
      return await nanoseconds(per: valuesInARun) {
        var sum = 0
        for _ in 0..<valuesInARun { sum &+= value.number.withLock { $0 } }
        precondition(sum == valuesInARun, "There was another value")
      }
    }
  )
}

private func valueUpdates() -> Comparison {
  Comparison(
    name: "value/update",
    peer: "Mutex<Int>",
    goal: 0,
    ours: {
      let value = CurrentValue(0)
      return await nanoseconds(per: valuesInARun) {
        for _ in 0..<valuesInARun { value.update { $0 &+= 1 } }
        precondition(value.value == valuesInARun, "An update was lost")
      }
    },
    theirs: {
      let value = LockedNumber()
      return await nanoseconds(per: valuesInARun) {
        for _ in 0..<valuesInARun { value.number.withLock { $0 &+= 1 } }
        precondition(value.number.withLock { $0 } == valuesInARun + 1, "An update was lost")
      }
    }
  )
}
