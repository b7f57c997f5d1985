import TestSupport
import Testing

@testable import PlexusTesting

@Suite(.fewAtOnce) struct `A waiting line` {
  @Test func `a waiting line serves in the order of the places, and skips removed ones`() {
    var line = WaitingLine<String>()
    for name in ["a", "b", "c", "d"] { line.enter(name, at: line.makePlace()) }
    #expect(line.leave(2) == "b")
    #expect(line.leave(2) == nil)
    #expect(line.removeFirst(2) == ["a", "c"])
    #expect(line.count == 1)
    #expect(line.removeFirst(5) == ["d"])
    #expect(line.removeFirst(5) == [])
  }

  @Test func `a waiting line serves an entry that arrives after a later place was served`() {
    var line = WaitingLine<String>()
    let early = line.makePlace()
    line.enter("late", at: line.makePlace())
    #expect(line.removeFirst(1) == ["late"])
    line.enter("early", at: early)
    #expect(line.removeFirst(1) == ["early"])
  }
}
