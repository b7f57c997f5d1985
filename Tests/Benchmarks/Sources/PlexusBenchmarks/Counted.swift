import Plexus

/// Rows of instructions and allocations, counted by valgrind and independent of the load of the machine.
func countedComparisons() -> [Comparison] {
  [
    instructions("burst/10", probe: "burst", atMost: 60, count: 8_000, each: 10),
    instructions("lockstep/10", probe: "lockstep", atMost: 6_000, count: 400, each: 10),
    against(
      "burst/10/AsyncStream",
      probe: "burst",
      theirProbe: "raw burst",
      count: 2_000,
      each: 10
    ),
    against(
      "lockstep/10/AsyncStream",
      probe: "lockstep",
      theirProbe: "raw lockstep",
      count: 400,
      each: 10
    ),
    against("subscribe and drop", probe: "subscribe", theirProbe: "raw subscribe", count: 10_000),
    against("joiners/task.value", probe: "calls", theirProbe: "calls of a task", count: 8_000),
    against("hit/Int/actor", probe: "hits", theirProbe: "hits of an actor", count: 40_000),
    .limit("allocations/hit", atMost: 0, unit: .allocations) {
      let mark = "total heap usage: "
      let count = try Probe.count("hits", by: ["--leak-check=no"], after: mark, count: 40_000)
      // The start of the process adds one allocation more or less in total.
      return (max(0, count) * 1_000).rounded() / 1_000
    },
  ]
}

private func instructions(
  _ name: String,
  probe: String,
  atMost limit: Double,
  count: Int,
  each: Int
) -> Comparison {
  .limit("instructions/\(name)", atMost: limit, unit: .instructions) {
    try countInstructions(of: probe, count: count) / Double(each)
  }
}

/// An informative row without a goal; the goals are for times, which instructions help to explain.
private func against(
  _ name: String,
  probe: String,
  theirProbe: String,
  count: Int,
  each: Int = 1
) -> Comparison {
  Comparison(
    name: "instructions/\(name)",
    peer: theirProbe,
    goal: 0,
    unit: .instructions,
    ours: { try countInstructions(of: probe, count: count) / Double(each) },
    theirs: { try countInstructions(of: theirProbe, count: count) / Double(each) }
  )
}

private func countInstructions(of probe: String, count: Int) throws -> Double {
  try Probe.count(
    probe,
    by: ["--tool=callgrind", "--callgrind-out-file=/dev/null"],
    after: "Collected : ",
    count: count
  )
}

/// The probes that run under valgrind.
let countedProbes: [String: Probe.Body] = [
  "burst": { await burst(Messenger<Int>(), subscribers: 10, messages: $0) },
  "raw burst": { await rawBurst(of: 1, subscribers: 10, messages: $0) },
  "lockstep": { await lockstep(subscribers: 10, rounds: $0) },
  "raw lockstep": { await rawLockstep(subscribers: 10, rounds: $0) },
  "subscribe": { await subscribeAndDrop(cycles: $0) },
  "raw subscribe": { await rawSubscribeAndDrop(cycles: $0) },
  "calls": { (try? await calls(count: $0)) ?? .nan },
  "calls of a task": { (try? await callsOfATask(count: $0)) ?? .nan },
  "hits": { count in
    let map = MultiplexerMap<Int, Int> { _ in 1 }
    for key in 0..<1_000 { map.store(1, for: key) }
    var sum = 0
    for number in 0..<count { sum += (try? await map.request(number % 1_000)) ?? 0 }
    return Double(sum)
  },
  "hits of an actor": { count in
    let cache = ActorCache(Array(0..<1_000))
    var sum = 0
    for number in 0..<count { sum += (try? await cache.request(number % 1_000)) ?? 0 }
    return Double(sum)
  },
]
