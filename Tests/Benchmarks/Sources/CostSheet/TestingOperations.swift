import Plexus
import PlexusTesting

/// Operations of the test kit.
let testingOperations: [Operation] =
  clockOperations + [
    Operation("gate: init") { count in
      for _ in 0..<count { _ = Gate() }
    },
    Operation("gate: wait, it is open") { count in
      let gate = Gate()
      gate.open()
      for _ in 0..<count { try await gate.wait() }
    },
    Operation("gate: admit + wait") { count in
      let gate = Gate()
      for _ in 0..<count {
        gate.admit()
        try await gate.wait()
      }
    },
    Operation("gate: open + close") { count in
      let gate = Gate()
      for _ in 0..<count {
        gate.open()
        gate.close()
      }
    },
    Operation("gate: isOpen + arrivalCount + waiterCount") { count in
      let gate = Gate()
      for _ in 0..<count { use(gate.isOpen ? 1 : gate.arrivalCount + gate.waiterCount) }
    },
    Operation("gate: arrivals, there are enough") { count in
      let gate = Gate()
      for _ in 0..<count { await gate.arrivals(0) }
    },
    Operation("gate: a task waits and is let through", count: 600) { count in
      let gate = Gate()
      for number in 0..<count {
        let task = Task { try await gate.wait() }
        await gate.arrivals(number + 1)
        gate.admit()
        try await task.value
      }
    },
    Operation("recorder: init + cancel", count: 300) { count in
      let messenger = Messenger<Int>()
      for _ in 0..<count { Recorder(messenger.subscription()).cancel() }
    },
    Operation("recorder: an element") { count in
      let recorder = Recorder(numbers(count))
      use(await recorder.finished().count)
    },
    Operation("recorder: first, there are enough") { count in
      let recorder = Recorder(numbers(8))
      use(await recorder.finished().count)
      for _ in 0..<count { use(await recorder.first(1).count) }
    },
    Operation("recorder: elements + isFinished + error") { count in
      let recorder = Recorder(numbers(8))
      use(await recorder.finished().count)
      for _ in 0..<count {
        use(recorder.isFinished && recorder.error == nil ? recorder.elements.count : 0)
      }
    },
    Operation("scripted fetcher: fetch") { count in
      let fetcher = ScriptedFetcher<Int>([.success(1)])
      for _ in 0..<count { use(try await fetcher.fetch()) }
    },
    Operation("scripted fetcher: count") { count in
      let fetcher = ScriptedFetcher<Int>([.success(1)])
      for _ in 0..<count { use(fetcher.count) }
    },
    Operation("interleavings: one order of a scenario with a hop", count: 300) { count in
      for _ in 0..<count { use(try forEveryInterleaving(deviations: 0) { await hop() }) }
    },
    Operation("interleavings: replay of an order", count: 300) { count in
      for _ in 0..<count { try replayInterleaving([]) { await hop() } }
    },
  ]

private let clockOperations: [Operation] = [
  Operation("manual clock: init") { count in
    for _ in 0..<count { _ = ManualClock() }
  },
  Operation("manual clock: now") { count in
    let clock = ManualClock()
    for _ in 0..<count { use(Int(clock.now.offset.components.seconds)) }
  },
  Operation("manual clock: advance, no sleeper") { count in
    let clock = ManualClock()
    for _ in 0..<count { clock.advance(by: .seconds(1)) }
  },
  Operation("manual clock: sleeperCount + nextDeadline") { count in
    let clock = ManualClock()
    for _ in 0..<count { use(clock.nextDeadline == nil ? clock.sleeperCount : 0) }
  },
  Operation("manual clock: a task sleeps and is woken", count: 600) { count in
    let clock = ManualClock()
    for _ in 0..<count {
      let task = Task { try await clock.sleep(for: .seconds(1)) }
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
      try await task.value
    }
  },
  Operation("manual clock: run an operation that sleeps", count: 300) { count in
    let clock = ManualClock()
    for _ in 0..<count {
      try await clock.run { try await clock.sleep(for: .seconds(1)) }
    }
  },
]
