import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce)
struct `The decisions of a connection` {
  private static func state(
    _ mode: LinkMode,
    ownsAreHandled: Bool = false
  ) -> LinkConnectionState {
    LinkConnectionState(
      mode: mode,
      type: "t",
      version: 1,
      origin: "here",
      ownsAreHandled: ownsAreHandled
    )
  }

  private static func message(
    _ id: String,
    type: String = "t",
    version: Int = 1,
    origin: String = "there"
  ) -> LinkMessage {
    LinkMessage(id: id, type: type, version: version, origin: origin, body: [])
  }

  private static func position(_ number: UInt64, epoch: UInt64 = 1) -> LinkPosition {
    LinkPosition(epoch: epoch, number: number)
  }

  @Test(.guarantee(.eventsDoNotReturn), arguments: [LinkMode.ephemeral, .everyNode()])
  func `own messages and repetitions are ignored`(mode: LinkMode) {
    var state = Self.state(mode)
    #expect(state.receive(Self.message("1"), at: Self.position(1), attempt: 1) == .handle)
    #expect(state.receive(Self.message("1"), at: Self.position(2), attempt: 1) == .ignore)
    let own = Self.message("2", origin: "here")
    #expect(state.receive(own, at: Self.position(3), attempt: 1) == .ignore)
    #expect(state.position == Self.position(3))
  }

  @Test(.guarantee(.eventsDoNotReturn))
  func `repetitions are recognized within the latest ids, and memory is bounded`() {
    for limit in 1...5 {
      var ids = LinkConnectionState.RecentIDs(limit: limit)
      for number in 0..<100 {
        let isNew = ids.insert("\(number)")
        #expect(isNew)
        let known = (0...number).filter { ids.contains("\($0)") }
        #expect(known.suffix(limit) == Array(max(0, number + 1 - limit)...number)[...])
        #expect(known.count <= 2 * limit)
        let areNew = known.map { ids.insert("\($0)") }
        #expect(!areNew.contains(true))
      }
    }
  }

  @Test func `foreign messages are skipped, or rejected by a group`() {
    var every = Self.state(.everyNode())
    var group = Self.state(.oneNode(group: "g"))
    let version = Self.message("1", version: 2)
    let type = Self.message("2", type: "u")
    let at = Self.position(1)
    #expect(every.receive(version, at: at, attempt: 1) == .skip(.foreignVersion(2)))
    #expect(every.receive(type, at: at, attempt: 1) == .skip(.foreignType("u")))
    #expect(group.receive(version, at: at, attempt: 1) == .reject(.foreignVersion(2)))
    #expect(group.receive(type, at: at, attempt: 1) == .reject(.foreignType("u")))
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `a group handles a message until it is settled, and no more often than allowed`() {
    var state = Self.state(.oneNode(group: "g", attempts: 2))
    let message = Self.message("1", origin: "here")
    #expect(state.receive(message, at: Self.position(1), attempt: 1) == .handle)
    #expect(state.isRetried(attempt: 1))
    #expect(state.receive(message, at: Self.position(1), attempt: 2) == .handle)
    #expect(!state.isRetried(attempt: 2))
    #expect(
      state.receive(message, at: Self.position(1), attempt: 3) == .reject(.tooManyAttempts)
    )
    state.settle(message)
    #expect(state.receive(message, at: Self.position(1), attempt: 3) == .acknowledge)
  }

  @Test func `own messages of a messenger count as handled by their group`() {
    var state = Self.state(.oneNode(group: "g"), ownsAreHandled: true)
    let own = Self.message("1", origin: "here")
    #expect(state.receive(own, at: Self.position(1), attempt: 1) == .acknowledge)
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `every node continues behind the last message`() {
    var state = Self.state(.everyNode())
    #expect(state.resumption == .everyNode(from: nil))
    #expect(state.connect(at: Self.position(4)) == nil)
    #expect(state.resumption == .everyNode(from: Self.position(4)))
    _ = state.receive(Self.message("1"), at: Self.position(5), attempt: 1)
    #expect(state.resumption == .everyNode(from: Self.position(5)))
    #expect(state.connect(at: Self.position(5)) == nil)
  }

  @Test(.guarantee(.ephemeralConnectionsReportMissedEvents))
  func `an ephemeral connection names what it has missed`() {
    var state = Self.state(.ephemeral)
    #expect(state.connect(at: Self.position(4)) == nil)
    #expect(state.connect(at: Self.position(4)) == nil)
    #expect(
      state.connect(at: Self.position(6))
        == LinkConnectionState.Gap(lost: Self.position(5)...Self.position(6))
    )
    #expect(
      state.connect(at: Self.position(7, epoch: 2)) == LinkConnectionState.Gap(lost: nil)
    )
    #expect(state.connect(at: .start) == LinkConnectionState.Gap(lost: nil))
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a group reports that the engine was set back, once`() {
    var state = Self.state(.oneNode(group: "g"))
    #expect(state.connect(at: Self.position(4)) == nil)
    _ = state.receive(Self.message("1"), at: Self.position(9), attempt: 1)
    // An event of another node that is repeated here.
    _ = state.receive(Self.message("2"), at: Self.position(3), attempt: 2)
    #expect(state.connect(at: Self.position(9)) == nil)
    #expect(state.connect(at: Self.position(12)) == nil)
    #expect(state.connect(at: Self.position(5)) == LinkConnectionState.Gap(lost: nil))
    #expect(state.connect(at: Self.position(5)) == nil)
    #expect(state.connect(at: Self.position(1, epoch: 2)) == nil)
    #expect(state.lose(nil) == true)
    #expect(state.connect(at: .start) == nil)
    #expect(state.resumption == .oneNode(group: "g"))
  }

  @Test(
    .guarantee(.oldDataIsReportedAsAGap),
    arguments: [LinkMode.oneNode(group: "g"), .ephemeral]
  )
  func `a loss that the position shows and that the link reports is one loss`(mode: LinkMode) {
    var state = Self.state(mode)
    #expect(state.connect(at: Self.position(9)) == nil)
    #expect(state.lose(nil) == true)
    #expect(state.connect(at: Self.position(9)) == nil)
    #expect(state.connect(at: Self.position(5)) != nil)
    // Positions that are known are those of other messages.
    #expect(state.lose(Self.position(1)...Self.position(2)) == true)
    #expect(state.lose(nil) == false)
    #expect(state.lose(nil) == true)
    _ = state.receive(Self.message("1"), at: Self.position(9), attempt: 1)
    #expect(state.connect(at: Self.position(5)) != nil)
    _ = state.receive(Self.message("2"), at: Self.position(6), attempt: 1)
    #expect(state.lose(nil) == true)
  }

  @Test func `the pause between attempts grows, and starts again`() {
    var state = Self.state(.ephemeral)
    let pauses = (0..<10).map { _ in state.interrupt(after: .zero) }
    #expect(pauses.prefix(3) == [.zero, .milliseconds(50), .milliseconds(100)])
    #expect(pauses.last == .seconds(5))
    #expect(state.interrupt(after: .seconds(10)) == .zero)
    _ = state.interrupt(after: .zero)
    _ = state.receive(Self.message("1"), at: Self.position(1), attempt: 1)
    #expect(state.interrupt(after: .zero) == .zero)
  }

  @Test func `positions know their successors, and name gaps`() {
    #expect(LinkPosition.start.isFollowed(by: Self.position(0)))
    #expect(!LinkPosition.start.isFollowed(by: Self.position(1)))
    #expect(Self.position(3).isFollowed(by: Self.position(4)))
    #expect(!Self.position(3).isFollowed(by: Self.position(4, epoch: 2)))
    #expect(
      Self.position(3).positions(before: Self.position(6)) == Self.position(4)...Self.position(5)
    )
    #expect(Self.position(3).positions(before: Self.position(4)) == nil)
    #expect(LinkPosition("12-34") == LinkPosition(epoch: 12, number: 34))
    for text in ["", "1", "1-", "-1", "1-2-3", "a-b"] { #expect(LinkPosition(text) == nil) }
  }
}
