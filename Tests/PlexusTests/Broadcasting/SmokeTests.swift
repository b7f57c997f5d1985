import Plexus
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Smoke` {
  @Test func `all`() async throws {
    let m = Messenger<Int>()
    let a = m.subscription()
    let b = m.subscribe()
    let c = m.subscription(bufferingPolicy: .bufferingNewest(2))
    let d = m.subscription(bufferingPolicy: .bufferingOldest(2))
    let me = Author()
    let e = m.subscribe(ignoring: me)
    #expect(m.subscriberCount == 5)
    for i in 0..<100 { m.send(i, from: i % 2 == 0 ? me : nil) }
    m.finish()
    var got: [[Int]] = [[], [], [], [], []]
    for await x in a { got[0].append(x) }
    for await x in b { got[1].append(x) }
    for await x in c { got[2].append(x) }
    for await x in d { got[3].append(x) }
    for await x in e { got[4].append(x) }
    #expect(got[0] == Array(0..<100))
    #expect(got[1] == Array(0..<100))
    #expect(got[2] == [98, 99])
    #expect(c.droppedCount == 98)
    #expect(got[3] == [0, 1])
    #expect(d.droppedCount == 98)
    #expect(got[4] == (0..<50).map { $0 * 2 + 1 })
    #expect(m.subscriberCount == 0)
  }

  @Test func `lockstep`() async throws {
    let m = Messenger<Int>()
    let ack = Messenger<Int>()
    let a = m.subscription()
    let acks = ack.subscription()
    let t = Task { for await x in a { ack.send(x) } }
    var it = acks.makeAsyncIterator()
    for i in 0..<10000 {
      m.send(i)
      let x = await it.next()
      #expect(x == i)
    }
    t.cancel()
    await t.value
    #expect(m.subscriberCount == 0)
  }
  @MainActor @Test func `observe`() async throws {
    let m = Messenger<Int>()
    var log: [String] = []
    let done = m.subscription()
    let t1 = m.observe { x in log.append("a\(x)"); if x == 1 { m.send(3) } }
    let t2 = m.observe { x in log.append("b\(x)"); if x == 3 { m.send(99) } }
    m.send(1)
    m.send(2)
    for await x in done { if x == 99 { break } }
    await Task.detached { @MainActor in }.value
    await Task.detached { @MainActor in }.value
    #expect(log.prefix(6) == ["a1", "b1", "a2", "b2", "a3", "b3"])
    #expect(m.subscriberCount == 3)
    t1.cancel()
    #expect(m.subscriberCount == 2)
    _ = t2
    let p = DataPublisher<Int>()
    #expect(try await p.load { 7 } == 7)
    for await s in p.subscribe() { #expect(s.value == 7); break }
    #expect(p.subscriberCount == 0)
  }
}
