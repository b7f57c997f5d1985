import Plexus
import PlexusTesting
import TestSupport
import Testing

/// A clock whose sleeps return at once, without moving it.
private struct FrozenClock: Clock {
  typealias Instant = ManualClock.Instant

  var now: Instant { Instant(offset: .zero) }

  var minimumResolution: Duration { .nanoseconds(1) }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
}

@Suite(.fewAtOnce) struct `A clock whose sleep returns at once without moving` {
  #if DEBUG
  @Test(.guarantee(.stoppedClocksAreNoticed), .startsProcess)
  func `a clock that does not move in sleep stops a debouncer with a message in debug builds`()
    async throws
  {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let debouncer = Debouncer(delay: .seconds(1), clock: FrozenClock())
      debouncer.touch()
      for await _ in debouncer.subscription() {}
      withExtendedLifetime(debouncer) {}
    }
    let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("returned before its deadline"))
  }

  @Test(.startsProcess)
  func `a clock that does not move in sleep stops a publisher of staleness in debug builds`()
    async throws
  {
    await #expect(processExitsWith: .failure) {
      let publisher = DataPublisher<Int>(
        staleAfter: .seconds(1),
        publishesStaleness: true,
        clock: FrozenClock()
      )
      publisher.update(1)
      for await _ in publisher.subscription() {}
      withExtendedLifetime(publisher) {}
    }
  }
  #endif
}
