import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The completion of a post` {
  private struct Nothing: Event {}

  private let core = EventBus.Core(clock: ContinuousClock())
  private let completion = EventChannel.PostCompletion()

  private var channel: EventChannel { core.makeChannel(of: Nothing.self, in: nil) }

  @Test func `the completion of a post ends with its last part, and sums them up`() {
    completion.begin(sequence: 7)
    completion.addPart()
    completion.addPart()
    #expect(completion.sequence == 7)
    completion.end(notified: 3, handled: 2)
    completion.end(notified: 2, handled: 0)
    #expect(!completion.hasEnded)
    completion.end(notified: 1, handled: 1)
    #expect(completion.hasEnded)
  }

  @Test func `the completion of a post without streams ends with the last queue`() async {
    completion.begin(sequence: 0)
    completion.addPart()
    #expect(!completion.withdrawPart())
    completion.end(notified: 2, handled: 1)
    #expect(await completion.outcome(in: channel) == PostOutcome(notified: 2, handled: 1))
  }

  @Test func `the completion of a post whose queues have ended already is left to the poster`()
    async
  {
    completion.begin(sequence: 0)
    completion.addPart()
    completion.end(notified: 2, handled: 1)
    #expect(completion.withdrawPart())
    #expect(!completion.hasEnded)
    completion.end(notified: 0, handled: 0)
    #expect(await completion.outcome(in: channel) == PostOutcome(notified: 2, handled: 1))
  }

  @Test func `a caller cancelled while the last handler ends its post gets the whole outcome`()
    async throws
  {
    let (bus, gate) = (EventBus(), Gate())
    let token = bus.observe(Notice.self) { _ async in
      await waitUnmoved(gate)
      return .handledSuccessfully
    }
    let caller = Task { await bus.postAndWait(Notice(1, .clearImmediately)) }
    await gate.arrivals(1)
    let channel = try #require(bus.core.channel(of: ObjectIdentifier(Notice.self)))
    // After the end has been recorded under the lock, and before the completion learns of it.
    channel.change { state, effects in
      effects.then { caller.cancel() }
      state.offers.finish(1, as: .succeeded)
    }
    #expect(await caller.value == PostOutcome(notified: 1, handled: 1))
    gate.open()
    withExtendedLifetime(token) {}
  }

  @Test func `the completion of a post of a cancelled caller keeps the counts of that time`() async
  {
    completion.begin(sequence: 0)
    completion.addPart()
    completion.addPart()
    completion.end(notified: 2, handled: 1)
    completion.abandon(nil)
    completion.end(notified: 1, handled: 1)
    completion.end(notified: 1, handled: 1)
    completion.finish(with: PostOutcome(notified: 9, handled: 9))
    let outcome = await completion.outcome(in: channel)
    #expect(outcome == PostOutcome(notified: 2, handled: 1, isIncomplete: true))
  }

  @Test
  func `the completion of a post counts every part of many threads, and resumes the caller once`()
    async
  {
    for _ in 0..<500 {
      let completion = EventChannel.PostCompletion()
      completion.begin(sequence: 0)
      for _ in 0..<4 { completion.addPart() }
      let outcome = await withTaskGroup { group in
        for part in 0..<4 { group.addTask { completion.end(notified: 1, handled: part & 1) } }
        group.addTask { if completion.withdrawPart() { completion.end(notified: 0, handled: 0) } }
        return await completion.outcome(in: channel)
      }
      #expect(outcome == PostOutcome(notified: 4, handled: 2))
    }
  }
}
