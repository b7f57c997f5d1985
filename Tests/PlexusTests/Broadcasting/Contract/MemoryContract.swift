import Plexus
import TestSupport
import Testing

/// The rules of memory, locks and threads for all broadcasters.
@Suite(.fewAtOnce) struct `The contract of memory` {
  @Test(.guarantee(.droppedStreamsUnsubscribe), arguments: contractSubjects, ReadingWay.all)
  func `dropping what subscribe returned unsubscribes`(
    subject: any ContractSubject,
    way: ReadingWay
  ) {
    let stage = subject.stage()
    var readers = (0..<3).map { _ in stage.subscribe(way) }
    #expect(stage.subscriberCount == 3)
    stage.send(0..<20)
    readers.removeLast()
    #expect(stage.subscriberCount == 2)
    readers = []
    #expect(stage.subscriberCount == 0)
  }

  @Test(.guarantee(.releasedSourcesEndTheirStreams), arguments: contractSubjects, ReadingWay.all)
  func `the last reference to a broadcaster ends its streams`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let begun = Log<Int>()
    let reader = stage.subscribe(way)
    let waiting = Task {
      var numbers: [Int] = []
      await reader.forEach(isolation: #isolation) { number in
        begun.append(number)
        numbers.append(number)
        return true
      }
      return numbers
    }
    let unread = stage.subscribe(way)
    stage.send(1)
    await begun.first(1)
    stage.send(2)
    stage.end()
    #expect(await waiting.value == [1, 2])
    #expect(await unread.numbers() == [1, 2])
    #expect(await reader.numbers().isEmpty)
  }

  @Test(
    .guarantee(.elementsAreReleasedAfterTheLastReader),
    arguments: contractSubjects.filter(\.deliversAtOnce),
    ReadingWay.all
  )
  func `elements are released when all subscribers have read them`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let census = Census()
    let readers = (0..<2).map { _ in stage.subscribe(way) }
    for number in 0..<1000 { stage.send(census.parcel(number)) }
    for reader in readers { _ = await reader.numbers(1000) }
    // The last ones can remain, in the chunk that is being filled or as the state.
    if way.policy == .unbounded { #expect(census.living <= 16) }
    stage.end()
    for reader in readers { _ = await reader.numbers() }
    #expect(census.living == 0)
    withExtendedLifetime(readers) {}
  }

  @Test(
    .guarantee(.elementsAreReleasedAfterTheLastReader),
    arguments: contractSubjects.filter { $0.sendsParcels && $0.deliversAtOnce },
    ReadingWay.all
  )
  func `an unread backlog is released with its last possible reader`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let census = Census()
    var readers = (0..<2).map { _ in stage.subscribe(way) }
    for number in 0..<100 { stage.send(census.parcel(number)) }
    #expect(census.living == 100)
    readers.removeLast()
    #expect(census.living == 100)
    _ = await readers[0].numbers(80)
    if way.policy == .unbounded { #expect(census.living <= 36) }
    readers = []
    // A state outlives its subscribers.
    #expect(census.living <= (subject.keepsNewest ? 1 : 0))
    stage.end()
    #expect(census.living == 0)
  }

  @Test(
    .guarantee(.tokensAndOwnersReleaseHandlers),
    arguments: contractSubjects.filter { !$0.losesInPauses },
    HandlerSite.allCases
  )
  func `a cancelled or released token frees the closure`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let census = Census()
    for isCancelled in [true, false] {
      let log = Log<Int>()
      var token: ObservationToken? = await observe(stage, site, census.parcel(), log)
      stage.send(1)
      await log.contains(1)
      #expect(stage.subscriberCount == 1)
      if isCancelled { token?.cancel() } else { token = nil }
      #expect(stage.subscriberCount == 0)
      await census.falls(to: 0)
      withExtendedLifetime(token) {}
    }
  }

  @Test(
    .guarantee(.releasedSourcesEndTheirStreams),
    arguments: contractSubjects,
    HandlerSite.allCases
  )
  func `the end of a broadcaster frees its handlers after the last message`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let census = Census()
    let log = Log<Int>()
    let token = await observe(stage, site, census.parcel(), log)
    stage.send(1..<100)
    stage.end()
    await census.falls(to: 0)
    #expect(log.entries == Array(1..<100))
    token.cancel()
  }

  @Test(.guarantee(.tokensAndOwnersReleaseHandlers), arguments: contractSubjects, [false, true])
  func `the release of its owner unsubscribes a handler`(
    subject: any ContractSubject,
    isAsync: Bool
  ) async {
    let stage = subject.stage()
    let census = Census()
    let log = Log<Int>()
    var owner: Parcel? = census.parcel()
    if let owner { observe(stage, as: owner, isAsync: isAsync, census.parcel(), log) }
    stage.send(1)
    await log.contains(1)
    #expect(stage.subscriberCount == 1)
    owner = nil
    // The handler can keep the owner alive during a call.
    await census.falls(to: 1)
    #expect(stage.subscriberCount == 0)
    await census.falls(to: 0)
    stage.send(2)
    #expect(log.entries.last == 1)
    withExtendedLifetime(owner) {}
  }

  @Test(.guarantee(.tokensAndOwnersReleaseHandlers), arguments: contractSubjects, [false, true])
  func `the closure of a released owner is freed by the next message alone`(
    subject: any ContractSubject,
    isAsync: Bool
  ) async {
    let stage = subject.stage()
    let census = Census()
    let log = Log<Int>()
    observe(stage, as: census.parcel(), isAsync: isAsync, census.parcel(), log)
    await census.falls(to: 1)
    stage.send(1)
    await census.falls(to: 0)
    #expect(log.entries.isEmpty)
    #expect(stage.subscriberCount == 0)
  }

  @Test(
    .guarantee(.noLockWhileUserCodeRuns),
    arguments: contractSubjects.filter(\.deliversAtOnce),
    ReadingWay.all
  )
  func `elements may use their broadcaster while they are released`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let census = Census()
    let released = Log<Int>()
    let reader = stage.subscribe(way)
    let other = stage.subscribe(way)
    let isOver = Guarded(false)
    for number in 0..<100 {
      stage.send(
        census.parcel(number) {
          guard !isOver.withLock({ $0 }) else { return released.append(number) }
          stage.send(-1)
          let another = stage.subscribe(way)
          released.append(stage.subscriberCount)
          withExtendedLifetime(another) {}
        }
      )
    }
    _ = await reader.numbers(100)
    _ = await other.numbers(50)
    isOver.withLock { $0 = true }
    stage.end()
    _ = await reader.numbers()
    _ = await other.numbers()
    await census.falls(to: 0)
    #expect(released.count == 100)
  }

  @Test(.guarantee(.sendingIsSynchronous), arguments: contractSubjects)
  func `sending is synchronous and callable from anywhere`(
    subject: any ContractSubject
  ) async {
    let stage = subject.stage()
    let reader = stage.subscribe()
    await MainActor.run { stage.send(1) }
    await HandlerHost().send(2, to: stage)
    await Task.detached { stage.send(3) }.value
    let token = ObservationToken { stage.send(4) }
    token.cancel()
    stage.send(5)
    #expect(await reader.numbers(5) == [1, 2, 3, 4, 5])
  }

  private func observe(
    _ stage: any Stage,
    _ site: HandlerSite,
    _ captured: Parcel,
    _ log: Log<Int>
  ) async -> ObservationToken {
    await stage.observe(site) { number in
      withExtendedLifetime(captured) { log.append(number) }
    }
  }

  private func observe(
    _ stage: any Stage,
    as owner: Parcel,
    isAsync: Bool,
    _ captured: Parcel,
    _ log: Log<Int>
  ) {
    stage.observe(as: owner, isAsync: isAsync) { number in
      withExtendedLifetime(captured) { log.append(number) }
    }
  }
}

extension HandlerHost {
  func send(_ number: Int, to stage: any Stage) {
    stage.send(number)
  }
}
