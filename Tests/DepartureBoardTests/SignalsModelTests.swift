import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import DepartureBoard

@MainActor
@Suite(.fewAtOnce, .serialized) struct `The signals` {
  @Test func `that arrive before the iteration are not lost`() async {
    // By default, both signals have no effect.
    let arrivals = Messenger<Int32>()
    let arrived = Recorder(arrivals.subscription())
    let signals = Signals([SIGURG, SIGWINCH]) { arrivals.send($0) }
    kill(getpid(), SIGURG)
    kill(getpid(), SIGWINCH)
    _ = await arrived.first(2)
    var received: Set<Int32> = []
    for await signal in signals.received {
      received.insert(signal)
      if received.count == 2 { break }
    }
    #expect(received == [SIGURG, SIGWINCH])
  }

  @Test func `that were ignored stay ignored`() async {
    signal(SIGUSR2, SIG_IGN)
    defer { signal(SIGUSR2, SIG_DFL) }
    let signals = Signals([SIGUSR2, SIGWINCH])
    let disposition = unsafeBitCast(signal(SIGUSR2, SIG_IGN), to: Int.self)
    #expect(disposition == unsafeBitCast(SIG_IGN, to: Int.self))
    kill(getpid(), SIGUSR2)
    kill(getpid(), SIGWINCH)
    for await signal in signals.received {
      #expect(signal == SIGWINCH)
      break
    }
  }
}
