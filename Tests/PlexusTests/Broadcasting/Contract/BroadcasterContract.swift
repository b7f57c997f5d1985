import Plexus
import TestSupport
import Testing

/// The rules of registration and order for all broadcasters.
@Suite(.fewAtOnce) struct `The contract of broadcasters` {
  @Test(.guarantee(.subscribersAreRegisteredAtOnce), arguments: contractSubjects, ReadingWay.all)
  func `what is sent after registration arrives, even before the iteration`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    stage.send(0)
    let reader = stage.subscribe(way)
    stage.send(1..<101)
    stage.end()
    #expect(await reader.numbers().filter { $0 > 0 } == Array(1..<101))
  }

  @Test(
    .guarantee(.subscribersAreRegisteredAtOnce),
    arguments: contractSubjects.filter(\.deliversAtOnce),
    HandlerSite.allCases
  )
  func `a handler gets what is sent after observe has returned`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    for policy in Policy.roomy {
      let log = Log<Int>()
      let token = await stage.observe(site, policy: policy) { log.append($0) }
      stage.send(1..<41)
      stage.send(99)
      await log.contains(99)
      #expect(log.entries.filter { $0 > 0 } == Array(1..<41) + [99])
      token.cancel()
      stage.send(0)
    }
  }

  @Test(.guarantee(.replayJoinsLiveDelivery), arguments: contractSubjects, ReadingWay.all)
  func `replay and live delivery join without a gap or a repetition`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let sender = Task.detached { stage.send(1..<201) }
    let readers = (0..<15).map { _ in stage.subscribe(way) }
    await sender.value
    stage.end()
    for reader in readers {
      let numbers = await reader.numbers()
      #expect(numbers == Array((numbers.first ?? 201)..<201))
    }
  }

  @Test(
    .guarantee(.statesAreReplayedImmediately),
    arguments: contractSubjects.filter { $0.replays && $0.deliversAtOnce },
    ReadingWay.all
  )
  func `a subscriber to states gets the newest one, with and without others`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    stage.send(1..<4)
    let readers = (0..<3).map { _ in stage.subscribe(way) }
    stage.end()
    for reader in readers { #expect(await reader.numbers() == [3]) }
  }

  @Test(.guarantee(.allSubscribersSeeOneOrder), arguments: contractSubjects, ReadingWay.all)
  func `all subscribers see one order, and each sender's own in it`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let readers = (0..<3).map { _ in stage.subscribe(way) }
    let lists = Task {
      await withTaskGroup(of: [Int].self) { group in
        for reader in readers { group.addTask { await reader.numbers() } }
        return await group.reduce(into: []) { $0.append($1) }
      }
    }
    await withTaskGroup { group in
      for sender in 1...3 { group.addTask { stage.send(sender * 1000..<sender * 1000 + 300) } }
    }
    stage.end()
    let received = await lists.value
    #expect(Set(received).count == 1)
    for sender in 1...3 {
      let own = received.first?.filter { $0 / 1000 == sender }
      #expect(own == Array(sender * 1000..<sender * 1000 + 300))
    }
  }

  @Test(
    .guarantee(.handlersOfOneActorKeepSubscriptionOrder),
    .guarantee(.forwardedSourcesFollowAllRules),
    arguments: contractSubjects,
    HandlerSite.synchronous
  )
  func `handlers on one actor are called in subscription order, message by message`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let host = HandlerHost()
    let log = Log<[Int]>()
    var tokens: [ObservationToken] = []
    for handler in 0..<5 {
      tokens.append(
        await stage.observe(site, policy: .unbounded, on: host) { log.append([$0, handler]) }
      )
    }
    stage.send(0..<30)
    let expected = (0..<30).flatMap { message in (0..<5).map { [message, $0] } }
    #expect(await log.first(150) == expected)
    withExtendedLifetime(tokens) {}
  }

  @Test(.guarantee(.suspendedHandlersDelayNoOther), arguments: contractSubjects)
  func `a handler that suspends never overlaps itself and delays no other`(
    subject: any ContractSubject
  ) async {
    let stage = subject.stage()
    let gate = Log<Void>()
    let slow = Log<String>()
    let other = Log<Int>()
    let slowToken = stage.observeSlowly { number in
      slow.append("begin \(number)")
      await gate.first(1)
      slow.append("end \(number)")
    }
    let otherToken = stage.observeSlowly { other.append($0) }
    let third = await stage.observe(.nonisolated) { other.append($0) }
    stage.send(0..<3)
    #expect(await other.first(6).sorted() == [0, 0, 1, 1, 2, 2])
    #expect(await slow.first(1) == ["begin 0"])
    gate.append(())
    let expected = (0..<3).flatMap { ["begin \($0)", "end \($0)"] }
    #expect(await slow.first(6) == expected)
    withExtendedLifetime((slowToken, otherToken, third)) {}
  }

  @Test(
    .guarantee(.nestedElementsFollowTheCurrentOne),
    arguments: contractSubjects,
    HandlerSite.synchronous
  )
  func `what a handler sends follows the current message, for all subscribers`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let host = HandlerHost()
    let log = Log<[Int]>()
    let first = await stage.observe(site, policy: .unbounded, on: host) { number in
      if number < 3 { stage.send(number + 1) }
      log.append([number, 1])
    }
    let second = await stage.observe(site, policy: .unbounded, on: host) { number in
      if number == 1 { stage.send(9) }
      log.append([number, 2])
    }
    let reader = stage.subscribe()
    stage.send(0)
    let expected = [0, 1, 2, 9, 3].flatMap { [[$0, 1], [$0, 2]] }
    #expect(await log.first(10) == expected)
    #expect(await reader.numbers(5) == [0, 1, 2, 9, 3])
    withExtendedLifetime((first, second)) {}
  }

  @Test(
    .guarantee(.nestedElementsFollowTheCurrentOne),
    arguments: contractSubjects,
    Reading.allCases
  )
  func `what a reader sends comes after what was sent before`(
    subject: any ContractSubject,
    reading: Reading
  ) async {
    let stage = subject.stage()
    let sender = stage.subscribe(ReadingWay(reading: reading))
    let other = stage.subscribe(ReadingWay(reading: reading))
    stage.send(0)
    stage.send(1)
    await sender.forEach(isolation: #isolation) { number in
      if number < 2 { stage.send(number + 10) }
      return number != 11
    }
    #expect(await other.numbers(4) == [0, 1, 10, 11])
  }

  @Test(
    .guarantee(.subscribersDuringDeliveryReceiveTheNext),
    arguments: contractSubjects,
    ReadingWay.all
  )
  func `a subscriber that joins during a delivery gets the next message`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let late = Log<any StageReader>()
    let token = await stage.observe(.nonisolated) { number in
      guard number == 1 else { return }
      late.append(stage.subscribe(way))
      stage.send(2..<12)
    }
    let outer = stage.subscribe(way)
    stage.send(1)
    _ = await outer.numbers(11)
    let numbers = await late.first(1)[0].numbers(subject.replays ? 11 : 10)
    // The replay of a state is the state that is being delivered; a message has no replay.
    #expect(numbers == Array((subject.replays ? 1 : 2)..<12))
    withExtendedLifetime(token) {}
  }

  @Test(
    .guarantee(.subscribersDuringDeliveryReceiveTheNext),
    arguments: contractSubjects,
    HandlerSite.allCases
  )
  func `a handler added while a message is being delivered gets the next one`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let inner = Log<Int>()
    let tokens = Log<ObservationToken>()
    let outer = stage.observeSlowly { number in
      guard number == 1 else { return }
      tokens.append(await stage.observe(site) { inner.append($0) })
      stage.send(2..<12)
    }
    stage.send(1)
    let first = subject.replays ? 1 : 2
    #expect(await inner.first(12 - first) == Array(first..<12))
    withExtendedLifetime((outer, tokens)) {}
  }
}
