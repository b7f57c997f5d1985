import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The trust in copies` {
  let clock = ManualClock()

  @Test func `holds until its end, and not at it`() {
    let trust = NearTrust(clock: clock)
    #expect(!trust.holds)
    trust.extend(until: trust.now.advanced(by: .seconds(2)))
    clock.advance(by: .seconds(2) - .nanoseconds(1))
    #expect(trust.holds)
    clock.advance(by: .nanoseconds(1))
    #expect(!trust.holds)
  }

  @Test func `is not extended by an answer to a message from before its end`() {
    let trust = NearTrust(clock: clock)
    let sent = trust.now
    trust.end()
    trust.extend(until: sent.advanced(by: .seconds(2)))
    #expect(!trust.holds)
    trust.extend(until: trust.now.advanced(by: .seconds(2)))
    #expect(trust.holds)
    trust.end()
    #expect(!trust.holds)
  }

  @Test func `lasts as long as can be expressed`() {
    let trust = NearTrust(clock: clock)
    trust.extend(until: trust.now.advanced(by: .seconds(Int64.max)))
    clock.advance(by: .seconds(1_000_000))
    #expect(trust.holds)
  }
}
