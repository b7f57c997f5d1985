import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `The testing library, in every order` {
    @Test func `a sleeper that is advanced and cancelled at once wakes once`()
      throws
    {
      try forEveryInterleaving {
        let clock = ManualClock()
        let doomed = Task { try await clock.sleep(for: .seconds(1)) }
        let canceller = Task { doomed.cancel() }
        let advancer = Task { clock.advance(by: .seconds(1)) }
        await canceller.value
        await advancer.value
        _ = await doomed.result
        guard clock.sleeperCount == 0 else { throw Wrong(what: "somebody still sleeps") }
      }
    }

    @Test(.guarantee(.sleepersWaitsForSleepers))
    func `waiting for sleepers never misses the last one`() throws {
      try forEveryInterleaving {
        let clock = ManualClock()
        let sleepers = (1...2).map { seconds in
          Task { try await clock.sleep(for: .seconds(seconds)) }
        }
        await clock.sleepers(2)
        guard clock.sleeperCount == 2 else { throw Wrong(what: "\(clock.sleeperCount) sleep") }
        clock.advance(by: .seconds(2))
        for sleeper in sleepers { try await sleeper.value }
      }
    }

    @Test func `waiting ends when the waiting task is cancelled, whenever that is`() throws {
      try forEveryInterleaving {
        let clock = ManualClock()
        let watcher = Task { await clock.sleepers(1) }
        let canceller = Task { watcher.cancel() }
        await watcher.value
        await canceller.value
      }
    }

    @Test func `a cancelled task never takes the admission of another one`() throws {
      try forEveryInterleaving {
        let gate = Gate()
        let doomed = Task { try await gate.wait() }
        let other = Task { try await gate.wait() }
        let canceller = Task { doomed.cancel() }
        let porter = Task { gate.admit() }
        await canceller.value
        await porter.value
        if case .success = await doomed.result { gate.admit() }
        try await other.value
      }
    }

    @Test func `a recorder misses nothing while others send, wait and cancel`() throws {
      try forEveryInterleaving(deviations: 4) {
        let (stream, source) = AsyncStream.makeStream(of: Int.self)
        let recorder = Recorder(stream)
        let sender = Task {
          source.yield(1)
          await hop()
          source.yield(2)
          source.finish()
        }
        let impatient = Task { await recorder.first(2) }
        let canceller = Task { impatient.cancel() }
        let first = await recorder.first(1)
        let all = await recorder.finished()
        guard first == [1], all == [1, 2] else { throw Wrong(what: "\(first), \(all)") }
        guard [1, 2].starts(with: await impatient.value) else { throw Wrong(what: "impatient") }
        await sender.value
        await canceller.value
      }
    }

    @Test func `a recorder that is cancelled finishes, whatever its sequence does`() throws {
      try forEveryInterleaving(deviations: 4) {
        let (stream, source) = AsyncStream.makeStream(of: Int.self)
        let recorder = Recorder(stream)
        let sender = Task {
          source.yield(1)
          source.finish()
        }
        let canceller = Task {
          recorder.cancel()
          return recorder.elements
        }
        let waiting = Task { await recorder.first(9) }
        let kept = await canceller.value
        guard await recorder.finished() == kept else { throw Wrong(what: "recorded after cancel") }
        guard await waiting.value == kept else { throw Wrong(what: "waited for more") }
        await sender.value
      }
    }
  }
}
