import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

/// The effects of cancelling a token.
@Suite(.fewAtOnce) struct `A registration` {
  final class Removed: Registration, @unchecked Sendable {
    let during = Guarded<@Sendable () -> Void>({})

    override func remove() {
      during.withLock { $0 }()
    }
  }

  @Test(.guarantee(.cancelStopsHandlers))
  func `a registration is cancelled for every caller before the first call has removed it`() {
    let (registration, seen) = (Removed(), Guarded<[Bool]>([]))
    let token = ObservationToken(registration)
    registration.during.withLock { during in
      during = { [weak registration] in
        // Like another thread that cancels at the same time: its call returns before the removal.
        registration?.cancel()
        seen.withLock { $0.append(registration?.isCancelled == true) }
      }
    }
    token.cancel()
    #expect(seen.withLock { $0 } == [true])
    #expect(token.isCancelled)
  }

  @Test func `a registration whose source has ended is over, and not cancelled`() {
    let registration = Removed()
    let token = ObservationToken(registration)
    #expect(!token.isOver)
    registration.end()
    #expect(token.isOver)
    #expect(!token.isCancelled)
    token.cancel()
    #expect(token.isCancelled)
  }

  @Test(.guarantee(.cancelStopsHandlers))
  func `a registration that is marked is not called again, although it is not removed yet`() async {
    let (calls, census) = (Guarded(0), Census())
    let handler = HandlerQueue.handler(
      Handler.Recipe(
        isolation: nil,
        .synchronous { [captured = census.parcel()] _ in
          withExtendedLifetime(captured) {}
          calls.withLock { $0 += 1 }
          return .succeeded
        }
      )
    )
    for _ in 0..<10 { handler.queue.send(Box(1)) }
    #expect(handler.mark())
    #expect(!handler.mark())
    handler.queue.start()
    handler.queue.close()
    // The queue has ended when it has released the contents of the closure.
    await census.falls(to: 0)
    #expect(calls.withLock { $0 } == 0)
  }
}

/// The queued elements that a reset takes from the handlers of a hub.
@Suite(.fewAtOnce) struct `A backlog of handlers that is discarded` {
  @Test(arguments: [true, false])
  func `a discarded backlog of handlers is not handled, whether it is queued or was taken`(
    suspends: Bool
  ) async {
    let (hub, log, gate) = (BroadcastHub<Parcel>(), Log<Int>(), Gate())
    let census = Census()
    let recipe = Handler.Recipe(
      isolation: nil,
      suspends
        ? .suspending { box in
          log.append(Box<Parcel>.element(of: box).number)
          try? await gate.wait()
          return .succeeded
        }
        : .synchronous { box in
          let number = Box<Parcel>.element(of: box).number
          log.append(number)
          if number == 2 { discard(3) }
          return .succeeded
        }
    )
    @Sendable func discard(_ sequence: Int) {
      var effects = HubEffects()
      hub.state.withLock { $0.handlers?.takeBack(before: sequence + 3, &effects) }
      effects.perform()
    }
    let handler = hub.start(hub.add(recipe, replaying: [Box(census.parcel(-1))]))
    if suspends {
      await gate.arrivals(1)
      for number in 0..<10 { hub.send(census.parcel(number)) }
      discard(3)
      #expect(census.living == 5)
      gate.open()
      #expect(await log.first(5) == [-1, 6, 7, 8, 9])
    } else {
      for number in 0..<10 { hub.send(census.parcel(number)) }
      #expect(await log.first(8) == [-1, 0, 1, 2, 6, 7, 8, 9])
    }
    handler.cancel()
    await census.falls(to: 0)
    withExtendedLifetime(hub) {}
  }
}
