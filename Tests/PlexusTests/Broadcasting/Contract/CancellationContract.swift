import Plexus
import TestSupport
import Testing

/// The rules of cancellation for all broadcasters.
@Suite(.fewAtOnce) struct `The contract of cancellation` {
  /// The number of elements that a cancelled loop can still receive.
  func allowance(_ way: ReadingWay) -> Int {
    way.reading == .subscription && way.policy == .unbounded ? 15 : 0
  }

  @Test(.guarantee(.cancelledLoopsEnd), arguments: contractSubjects, ReadingWay.all)
  func `a cancelled loop ends however much is buffered`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    // At every position of a chunk, and without chunks.
    let places = way.policy == .unbounded ? Array(1...34) : [1, 2, 33]
    for cancelledAt in places {
      let stage = subject.stage()
      let reader = stage.subscribe(way)
      stage.send(1..<101)
      let numbers = await Task {
        var numbers: [Int] = []
        await reader.forEach(isolation: #isolation) { number in
          numbers.append(number)
          if number == cancelledAt { withUnsafeCurrentTask { $0?.cancel() } }
          return true
        }
        return numbers
      }.value
      #expect(numbers == Array(1..<numbers.count + 1))
      #expect(cancelledAt...cancelledAt + allowance(way) ~= numbers.count)
      #expect(stage.subscriberCount == 0)
    }
  }

  @Test(.guarantee(.cancelledLoopsEnd), arguments: contractSubjects, ReadingWay.all)
  func `a loop in a cancelled task sees nothing`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let reader = stage.subscribe(way)
    stage.send(1..<101)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await reader.numbers()
    }
    #expect(await task.value.isEmpty)
    #expect(stage.subscriberCount == 0)
  }

  @Test(.guarantee(.cancelledLoopsEnd), arguments: contractSubjects, ReadingWay.all)
  func `a waiting loop ends when it is cancelled`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let reader = stage.subscribe(way)
    let other = stage.subscribe(way)
    let log = Log<Int>()
    let task = Task {
      await reader.forEach(isolation: #isolation) { number in
        log.append(number)
        return true
      }
    }
    stage.send(1)
    await log.first(1)
    task.cancel()
    await task.value
    stage.send(2)
    #expect(log.entries == [1])
    #expect(stage.subscriberCount == 1)
    stage.end()
    #expect(await other.numbers().suffix(2) == (way.policy == .newest(1) ? [2] : [1, 2]))
  }

  @Test(.guarantee(.cancelledLoopsEnd), arguments: contractSubjects, ReadingWay.all)
  func `a cancelled loop never continues`(
    subject: any ContractSubject,
    way: ReadingWay
  ) async {
    let stage = subject.stage()
    let reader = stage.subscribe(way)
    let other = stage.subscribe(way)
    stage.send(1..<4)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await reader.numbers()
    }
    _ = await task.value
    stage.send(4..<50)
    #expect(await reader.numbers().isEmpty)
    #expect(await other.numbers(49) == Array(1..<50))
    #expect(stage.subscriberCount == 1)
  }

  @Test(
    .guarantee(.handlersDoNotStartAfterCancellation),
    arguments: contractSubjects,
    HandlerSite.allCases
  )
  func `a handler that cancels itself is not called again`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let census = Census()
    let log = Log<Int>()
    let tokens = Log<ObservationToken>()
    tokens.append(await selfCancelling(stage, site, census.parcel(), log, tokens))
    stage.send(1..<50)
    stage.send(50..<100)
    // A released closure cannot be called.
    await census.falls(to: 0)
    #expect(log.entries == [1, 2, 3])
    #expect(stage.subscriberCount == 0)
    #expect(tokens.entries[0].isCancelled)
  }

  private func selfCancelling(
    _ stage: any Stage,
    _ site: HandlerSite,
    _ captured: Parcel,
    _ log: Log<Int>,
    _ tokens: Log<ObservationToken>
  ) async -> ObservationToken {
    await stage.observe(site) { number in
      guard number > 0 else { return }
      withExtendedLifetime(captured) { log.append(number) }
      // The token may not exist yet; the handler checks again at the next message.
      if number >= 3 { for token in tokens.entries { token.cancel() } }
    }
  }

  @Test(
    .guarantee(.handlersDoNotStartAfterCancellation),
    arguments: contractSubjects,
    HandlerSite.synchronous
  )
  func `a handler cancelled by one before it misses the current message`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let host = HandlerHost()
    let log = Log<Int>()
    let tokens = Guarded<[ObservationToken]>([])
    let canceller = await stage.observe(site, policy: .unbounded, on: host) { number in
      if number == 3 { for token in tokens.withLock({ $0 }) { token.cancel() } }
    }
    let cancelled = await stage.observe(site, policy: .unbounded, on: host) { log.append($0) }
    tokens.withLock { $0 = [cancelled] }
    let end = Log<Int>()
    let witness = await stage.observe(site, policy: .unbounded, on: host) { end.append($0) }
    stage.send(1..<100)
    await end.first(99)
    #expect(log.entries == [1, 2])
    withExtendedLifetime((canceller, witness)) {}
  }

  @MainActor
  @Test(
    .guarantee(.handlersDoNotStartAfterCancellation),
    arguments: contractSubjects.filter { !$0.losesInPauses },
    [HandlerSite.mainActor, .mainActorAsync]
  )
  func `cancelling on the handler's own actor is exact`(
    subject: any ContractSubject,
    site: HandlerSite
  ) async {
    let stage = subject.stage()
    let log = Log<Int>()
    let token = await stage.observe(site) { log.append($0) }
    // Nothing can run on this actor before the cancellation.
    stage.send(1..<100)
    let count = log.count
    token.cancel()
    let end = Log<Int>()
    let witness = await stage.observe(site) { end.append($0) }
    stage.send(100..<120)
    stage.send(-1)
    await end.contains(-1)
    #expect(log.count == count)
    witness.cancel()
  }

  @Test(.guarantee(.tokensCancelSuspendedHandlers), arguments: contractSubjects)
  func `cancelling a token cancels the task of its handler`(
    subject: any ContractSubject
  ) async {
    let stage = subject.stage()
    let begun = Log<Int>()
    let ended = Log<Bool>()
    let never = Log<Void>()
    let token = stage.observeSlowly { number in
      begun.append(number)
      await never.first(1)
      ended.append(Task.isCancelled)
    }
    stage.send(1..<10)
    await begun.first(1)
    token.cancel()
    #expect(await ended.first(1) == [true])
    #expect(stage.subscriberCount == 0)
    #expect(begun.entries == [1])
  }
}
