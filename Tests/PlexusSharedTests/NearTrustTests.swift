import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The trust in copies` {
  let clock = ManualClock()

  @Test(.guarantee(.lateAnswersExtendNoTrust))
  func `the trust in copies holds until its end, and not at it`() {
    let trust = NearTrust(clock: clock)
    #expect(!trust.holds)
    trust.extend(until: trust.now.advanced(by: .seconds(2)))
    clock.advance(by: .seconds(2) - .nanoseconds(1))
    #expect(trust.holds)
    clock.advance(by: .nanoseconds(1))
    #expect(!trust.holds)
  }

  @Test(.guarantee(.lateAnswersExtendNoTrust))
  func `the trust in copies is not extended by an answer to a message from before its end`() {
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

  @Test(.guarantee(.trustedCopiesAskNothing))
  func `a copy is used without asking the engine, until the trust ends`() async throws {
    // With the clock of the system, which hits read without a call.
    let node = SharedNode(SharedMemory<String>(), clock: ContinuousClock()) { _ in "1" }
    _ = try await node.map.request("k")
    for _ in 0..<100 { #expect(try await node.map.request("k") == "1") }
    #expect(try await node.map.request(["k"])["k"]?.get() == "1")
    #expect(try await node.map.response("k").source == .memory)
    #expect(node.cacher.lookCount == 1)
    node.cacher.trust.end()
    _ = try await node.map.request("k")
    #expect(node.cacher.lookCount == 2)
    _ = try await node.map.response("k")
    #expect(node.cacher.lookCount == 3)
    // Reconnected: the copy is confirmed, and used again.
    node.cacher.reconnect()
    for _ in 0..<3 { _ = try await node.map.request("k") }
    #expect(node.cacher.lookCount == 4)
    node.cacher.trust.extend(until: node.cacher.trust.now)
    _ = try await node.map.request("k")
    #expect(node.cacher.lookCount == 5)
    #expect(node.fetchCount == 1)
  }

  @Test func `the trust in copies lasts as long as can be expressed`() {
    let trust = NearTrust(clock: clock)
    trust.extend(until: trust.now.advanced(by: .seconds(Int64.max)))
    clock.advance(by: .seconds(1_000_000))
    #expect(trust.holds)
  }
}
