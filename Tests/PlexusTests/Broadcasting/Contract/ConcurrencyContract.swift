import Plexus
import TestSupport
import Testing

/// One order for all consumers, whatever is sent concurrently.
@Suite(.fewAtOnce) struct `The contract of concurrency` {
  @Test(.guarantee(.allSubscribersSeeOneOrder), arguments: contractSubjects)
  func `consumers on and off actors see one order of what many send at once`(
    subject: any ContractSubject
  ) async {
    let stage = subject.stage()
    let host = HandlerHost()
    var logs: [Log<Int>] = []
    var tokens: [ObservationToken] = []
    for site in HandlerSite.allCases {
      let log = Log<Int>()
      logs.append(log)
      tokens.append(
        await stage.observe(site, policy: .unbounded, on: host) { number in
          if number > 0 { log.append(number) }
        }
      )
    }
    let readers = (0..<3).map { _ in stage.subscribe() }
    let main = Task { @MainActor in await readers[0].positiveNumbers(800) }
    let actor = Task { await host.read(readers[1], 800) }
    let nonisolated = Task.detached { await readers[2].positiveNumbers(800) }
    await withTaskGroup { group in
      for sender in 1...4 {
        group.addTask { stage.send(sender * 1000..<sender * 1000 + 200) }
      }
      group.addTask { @MainActor in stage.send(0) }
    }
    var lists: Set<[Int]> = [await main.value, await actor.value, await nonisolated.value]
    for log in logs { lists.insert(await log.first(800)) }
    #expect(lists.count == 1)
    for sender in 1...4 {
      let own = lists.first?.filter { $0 / 1000 == sender }
      #expect(own == Array(sender * 1000..<sender * 1000 + 200))
    }
    withExtendedLifetime(tokens) {}
  }

  @Test(.guarantee(.subscribersDuringDeliveryReceiveTheNext), arguments: contractSubjects)
  func `subscribers that join and leave while many send miss nothing in between`(
    subject: any ContractSubject
  ) async {
    let stage = subject.stage()
    // There is always a subscriber.
    let host = stage.subscribe()
    let isOver = Guarded(false)
    // Each sender reads its own elements, and is therefore never far ahead of the others.
    let echo = stage.subscribe()
    let sending = Task.detached {
      var count = 0
      while !isOver.withLock({ $0 }) {
        stage.send(count + 1..<count + 21)
        count += 20
        await Task.detached {}.value
        if count.isMultiple(of: 1_000) { _ = await echo.positiveNumbers(1_000) }
      }
      return count
    }
    await withTaskGroup { group in
      for guest in 0..<4 {
        group.addTask {
          for visit in 0..<20 {
            let way = ReadingWay.all[(guest + visit) % ReadingWay.all.count]
            let numbers = await stage.subscribe(way).positiveNumbers(30)
            let first = numbers.first ?? 0
            #expect(numbers == Array(first..<first + 30))
          }
        }
      }
    }
    isOver.withLock { $0 = true }
    let count = await sending.value
    #expect(await host.positiveNumbers(count) == Array(1..<count + 1))
  }
}

extension StageReader {
  /// Reads a number of positive numbers, or all until the end.
  func positiveNumbers(
    _ limit: Int,
    isolation: isolated (any Actor)? = #isolation
  ) async -> [Int] {
    var numbers: [Int] = []
    await forEach(isolation: isolation) { number in
      if number > 0 { numbers.append(number) }
      return numbers.count < limit
    }
    return numbers
  }
}

extension HandlerHost {
  func read(_ reader: any StageReader, _ limit: Int) async -> [Int] {
    await reader.positiveNumbers(limit)
  }
}
