import Plexus
import Synchronization

/// Rows for large numbers of waiting tasks.
func crowdComparisons() -> [Comparison] {
  [
    bytesOfAJoiner(),
    cancelOneOfMany(),
    .limit("bytes/parked subscriber", atMost: 160, unit: .bytes) {
      try Probe.run("parked subscribers", count: crowdSize)
        - Probe.run("parked tasks", count: crowdSize)
    },
    Comparison(
      name: "bytes/parked subscriber/stream",
      peer: "AsyncStream",
      goal: 1,
      unit: .bytes,
      ours: {
        try Probe.run("parked subscribers", count: crowdSize)
          - Probe.run("parked tasks", count: crowdSize)
      },
      theirs: {
        try Probe.run("parked streams", count: crowdSize)
          - Probe.run("parked tasks", count: crowdSize)
      }
    ),
  ]
}

private let crowdSize = 100_000

private func bytesOfAJoiner() -> Comparison {
  Comparison(
    name: "bytes/100,000 joiners",
    peer: "await task.value",
    goal: 1 / 1.1,
    unit: .bytes,
    ours: { try Probe.run("joiners", count: crowdSize) },
    theirs: { try Probe.run("joiners of a task", count: crowdSize) }
  )
}

/// A row for the time from the cancellation of one of many callers of a fetch until it returns.
private func cancelOneOfMany() -> Comparison {
  .limit("cancel one of 100,000", atMost: 1_000_000, unit: .nanoseconds) {
    let door = Door()
    let multiplexer = Multiplexer<Int> {
      await door.wait()
      return 1
    }
    let callers = await parked(crowdSize) { _ = try? await multiplexer.request() }
    let result = await nanoseconds(per: 1) {
      callers[crowdSize / 2].cancel()
      await callers[crowdSize / 2].value
    }
    door.open()
    for caller in callers { await caller.value }
    return result
  }
}

/// The probes for the memory of a waiting task.
let crowdProbes: [String: Probe.Body] = [
  "joiners": { count in
    let door = Door()
    let multiplexer = Multiplexer<Int> {
      await door.wait()
      return 1
    }
    return await bytes(of: count) { _ = try? await multiplexer.request() }
  },
  "joiners of a task": { count in
    let door = Door()
    let task = Task<Int, any Error> {
      await door.wait()
      return 1
    }
    return await bytes(of: count) { _ = try? await task.value }
  },
  "parked tasks": { count in
    await bytes(of: count) { await withUnsafeContinuation { Parking.shared.park($0) } }
  },
  "parked subscribers": { count in
    let messenger = Messenger<Int>()
    return await bytes(of: count) {
      let subscription = messenger.subscription()
      for await _ in subscription {}
    }
  },
  "parked streams": { count in
    let source = RawFanOut<Int>()
    return await bytes(of: count) {
      let stream = source.subscribe()
      for await _ in stream {}
    }
  },
]

/// The peer of a waiting caller: a list of suspended tasks that are never resumed.
private final class Parking: Sendable {
  static let shared = Parking()
  private let tasks = Mutex<[UnsafeContinuation<Void, Never>]>([])

  func park(_ task: UnsafeContinuation<Void, Never>) {
    tasks.withLock { $0.append(task) }
  }
}

private func bytes(
  of count: Int,
  _ body: @escaping @concurrent @Sendable () async -> Void
) async -> Double {
  // Allocates the memory that the process needs for the first tasks.
  let first = await parked(100, body)
  let before = bytesInUse()
  let tasks = await parked(count, body)
  let bytes = bytesInUse() - before
  withExtendedLifetime((first, tasks)) {}
  return Double(bytes) / Double(count)
}

/// Starts tasks and waits until all of them are suspended.
private func parked(
  _ count: Int,
  _ body: @escaping @concurrent @Sendable () async -> Void
) async -> [Task<Void, Never>] {
  let begun = Counter()
  let tasks = (0..<count).map { _ in
    Task.detached {
      begun.increment()
      await body()
    }
  }
  while begun.value < count { await Task.yield() }
  // The last tasks have started and are about to suspend.
  try? await Task.sleep(for: .milliseconds(100))
  return tasks
}
