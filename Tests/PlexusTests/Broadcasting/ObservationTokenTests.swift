import Plexus
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An observation token` {
  @Test func `an observation token can be checked any number of times before it is cancelled`() {
    let calls = Log<Void>()
    let token = ObservationToken { calls.append(()) }
    for _ in 0..<1_000_000 where token.isCancelled { Issue.record("nobody has cancelled it") }
    token.cancel()
    #expect(calls.count == 1)
    #expect(token.isCancelled)
  }

  @Test(.guarantee(.tokensCallTheirClosureOnce))
  func `an observation token calls its closure once, however often it is cancelled`() async {
    let calls = Log<Int>()
    let token = ObservationToken { calls.append(1) }
    #expect(!token.isCancelled)
    await withTaskGroup { group in
      for _ in 0..<50 { group.addTask { token.cancel() } }
    }
    #expect(token.isCancelled)
    #expect(calls.count == 1)
  }

  @Test(.guarantee(.tokensCallTheirClosureOnce))
  func `an observation token is cancelled by the release of its last reference`() {
    let calls = Log<Int>()
    var token: ObservationToken? = ObservationToken { calls.append(1) }
    var other = token
    token = nil
    #expect(calls.count == 0)
    #expect(other?.isCancelled == false)
    other = nil
    #expect(calls.count == 1)
  }

  @Test func `an observation token releases its closure when it is cancelled, outside of its lock`()
  {
    let census = Census()
    let tokens = Log<ObservationToken>()
    let wasCancelled = Log<Bool>()
    func make() -> ObservationToken {
      // An object in the closure reads the token while it is released.
      let captured = census.parcel { wasCancelled.append(tokens.entries[0].isCancelled) }
      return ObservationToken { withExtendedLifetime(captured) {} }
    }
    tokens.append(make())
    #expect(census.living == 1)
    tokens.entries[0].cancel()
    #expect(census.living == 0)
    #expect(wasCancelled.entries == [true])
  }

  @Test func `an observation token may be cancelled by its own closure`() {
    let tokens = Log<ObservationToken>()
    let calls = Log<Bool>()
    tokens.append(
      ObservationToken {
        tokens.entries[0].cancel()
        calls.append(tokens.entries[0].isCancelled)
      }
    )
    tokens.entries[0].cancel()
    #expect(calls.entries == [true])
  }

  @Test(.guarantee(.tokensCallTheirClosureOnce))
  func `an observation token is equal to itself only`() {
    let first = ObservationToken {}
    let second = ObservationToken {}
    let same = first
    #expect(first == same)
    #expect(first != second)
    #expect(Set([first, second, first]).count == 2)
  }

  @Test(.guarantee(.tokensCallTheirClosureOnce))
  func `an observation token dropped at once removes its handler`() {
    let messenger = Messenger<Int>()
    let calls = Log<Int>()
    _ = messenger.observe { (number: Int) in calls.append(number) }
    _ = messenger.observe { (number: Int) async in calls.append(number) }
    #expect(messenger.subscriberCount == 0)
    messenger.send(1)
    #expect(calls.count == 0)
  }

  @Test func `an observation token may outlive its broadcaster`() {
    var messenger: Messenger<Int>? = Messenger()
    let token = messenger?.observe { (_: Int) in }
    weak let weakMessenger = messenger
    messenger = nil
    #expect(weakMessenger == nil)
    #expect(token?.isCancelled == false)
    token?.cancel()
  }
}

@Suite(.fewAtOnce) struct `An observation bag` {
  @Test func `an observation bag removes tokens whose source has ended`() async {
    let bag = ObservationBag()
    let bus = EventBus()
    for number in 0..<200 {
      let messenger = Messenger<Int>()
      messenger.observe { (_: Int) in }.store(in: bag)
      messenger.observe { (_: Int) async in }.store(in: bag)
      if number.isMultiple(of: 2) { messenger.finish() }
    }
    while bag.count > 0 { await Task.detached {}.value }
    let kept = bus.observe(Ping.self) { _ in }
    kept.store(in: bag)
    #expect(bag.count == 1)
    #expect(!kept.isCancelled)
    bag.cancelAll()
    #expect(kept.isCancelled)
  }

  @Test(.guarantee(.bagsCancelInOrder))
  func `an observation bag cancels what is in it in order of insertion, and can be used again`() {
    let calls = Log<Int>()
    let bag = ObservationBag()
    for round in 0..<3 {
      for number in 0..<20 { ObservationToken { calls.append(number) }.store(in: bag) }
      #expect(bag.count == 20)
      bag.cancelAll()
      #expect(bag.count == 0)
      #expect(calls.entries.suffix(20) == Array(0..<20)[...])
      #expect(calls.count == 20 * (round + 1))
    }
  }

  @Test(.guarantee(.bagsCancelInOrder))
  func `an observation bag cancels what is in it when it is released`() {
    let calls = Log<Int>()
    do {
      let bag = ObservationBag()
      bag.insert(ObservationToken { calls.append(1) })
      bag.insert(ObservationToken { calls.append(2) })
      #expect(calls.count == 0)
    }
    #expect(calls.entries == [1, 2])
  }

  @Test(.guarantee(.bagsCancelInOrder))
  func `an observation bag holds a token once and a cancelled one not at all`() {
    let bag = ObservationBag()
    let token = ObservationToken {}
    bag.insert(token)
    token.store(in: bag)
    #expect(bag.count == 1)
    token.cancel()
    #expect(bag.count == 0)
    bag.insert(token)
    #expect(bag.count == 0)
  }

  @Test func `an observation bag in use for long does not grow with what was cancelled one by one`()
  {
    let bag = ObservationBag()
    weak var first: ObservationToken?
    let kept = ObservationToken {}
    bag.insert(kept)
    for number in 0..<200 {
      let token = ObservationToken {}
      if number == 0 { first = token }
      bag.insert(token)
      token.cancel()
    }
    #expect(first == nil)
    #expect(bag.count == 1)
    bag.cancelAll()
    #expect(kept.isCancelled)
  }

  @Test
  func `an observation bag runs the closures and releases what they hold outside of its lock`() {
    let bag = ObservationBag()
    let census = Census()
    let counts = Log<Int>()
    for _ in 0..<20 {
      let captured = census.parcel { counts.append(bag.count) }
      bag.insert(
        ObservationToken {
          withExtendedLifetime(captured) {
            bag.insert(ObservationToken {})
            counts.append(bag.count)
          }
        }
      )
    }
    bag.cancelAll()
    #expect(census.living == 0)
    #expect(counts.count == 40)
    #expect(bag.count == 20)
  }

  @Test func `an observation bag that holds its owner's handlers ends them with the owner`() async {
    final class Screen: Sendable {
      let bag = ObservationBag()
      let log = Log<Int>()

      func observe(_ messenger: Messenger<Int>) {
        messenger.observe { [log] (number: Int) in log.append(number) }.store(in: bag)
        messenger.observe { [log] (number: Int) async in log.append(number) }.store(in: bag)
      }
    }
    let messenger = Messenger<Int>()
    var screen: Screen? = Screen()
    screen?.observe(messenger)
    messenger.send(1)
    #expect(await screen?.log.first(2) == [1, 1])
    #expect(messenger.subscriberCount == 2)
    screen = nil
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `an observation bag takes tokens from several threads while others empty it`() async {
    let bag = ObservationBag()
    let calls = Log<Int>()
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          for number in 0..<200 { bag.insert(ObservationToken { calls.append(number) }) }
        }
        group.addTask { for _ in 0..<20 { bag.cancelAll() } }
      }
    }
    bag.cancelAll()
    #expect(calls.count == 800)
    #expect(bag.count == 0)
  }
}
