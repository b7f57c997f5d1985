import Plexus
import TestSupport
import Testing

/// The guarantees for handlers.
@Suite(.fewAtOnce) struct `An observation` {
  @MainActor final class Label: Sendable {
    var texts: [String] = []

    func observe(_ messenger: Messenger<String>) {
      messenger.observe(as: self) { me, text in me.texts.append(text) }
    }
  }

  @MainActor @Test(.guarantee(.closuresRunOnTheirActor))
  func `an observation of main-actor code runs on the main actor as it is written`() async {
    let messenger = Messenger<String>()
    let label = Label()
    label.observe(messenger)
    let end = Log<String>()
    let token = messenger.observe { (text: String) in end.append(text) }
    messenger.send("a")
    messenger.send("b")
    #expect(label.texts.isEmpty)
    await end.first(2)
    #expect(label.texts == ["a", "b"])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.closuresRunOnTheirActor))
  func `an observation of an actor that passes itself calls the actor`() async {
    actor Screen {
      let log = Log<Int>()

      func observe(_ messenger: Messenger<Int>) {
        messenger.observe(as: self) { me, number async in await me.changed(number) }
      }

      func changed(_ number: Int) {
        log.append(number)
      }
    }
    let messenger = Messenger<Int>()
    let screen = Screen()
    await screen.observe(messenger)
    for number in 0..<100 { messenger.send(number) }
    #expect(await screen.log.first(100) == Array(0..<100))
    #expect(messenger.subscriberCount == 1)
  }

  @MainActor @Test
  func `an observation sees what was sent from elsewhere in one order with all others`() async {
    let messenger = Messenger<Int>()
    let logs = (0..<3).map { _ in Log<Int>() }
    let tokens = logs.map { log in messenger.observe { (number: Int) in log.append(number) } }
    await withTaskGroup { group in
      for sender in 1...2 {
        group.addTask {
          for number in 0..<200 { messenger.send(sender * 1000 + number) }
        }
      }
    }
    for log in logs { await log.first(400) }
    #expect(Set(logs.map(\.entries)).count == 1)
    for sender in 1...2 {
      let own = logs[0].entries.filter { $0 / 1000 == sender }
      #expect(own == Array(sender * 1000..<sender * 1000 + 200))
    }
    withExtendedLifetime(tokens) {}
  }

  @MainActor @Test(.guarantee(.handlersOfOneActorKeepSubscriptionOrder))
  func `an observation keeps its place in subscription order when others come and go`() async {
    let messenger = Messenger<Int>()
    let log = Log<String>()
    func add(_ name: String) -> ObservationToken {
      messenger.observe { (number: Int) in log.append("\(name)\(number)") }
    }
    let first = add("a")
    let second = add("b")
    let third = add("c")
    messenger.send(1)
    await log.first(3)
    second.cancel()
    let fourth = add("d")
    messenger.send(2)
    await log.first(6)
    first.cancel()
    let fifth = add("b")
    messenger.send(3)
    #expect(await log.first(9) == ["a1", "b1", "c1", "a2", "c2", "d2", "c3", "d3", "b3"])
    withExtendedLifetime((third, fourth, fifth)) {}
  }

  @MainActor @Test func `observations on one actor and off it see the same messages`() async {
    let messenger = Messenger<Int>()
    let here = Log<Int>()
    let there = Log<Int>()
    let tokens = [
      messenger.observe { (number: Int) in here.append(number) },
      messenger.observe { @Sendable (number: Int) in there.append(number) },
    ]
    for number in 0..<200 { messenger.send(number) }
    #expect(await here.first(200) == Array(0..<200))
    #expect(await there.first(200) == Array(0..<200))
    withExtendedLifetime(tokens) {}
  }

  @Test(arguments: [1, 3, 64])
  func `an observation that buffers the newest elements skips older ones`(limit: Int) async {
    let (messenger, host, log) = (Messenger<Int>(), SteppedHost(), Log<Int>())
    let token = await host.observe(messenger, .bufferingNewest(limit), log)
    for number in 0..<200 { messenger.send(number) }
    // On a busy machine the handler yields its actor in between.
    while log.entries.last != 199, !Task.isCancelled { await host.executor.step() }
    #expect(log.entries == Array(200 - limit..<200))
    messenger.send(200)
    await host.executor.step()
    #expect(log.entries.last == 200)
    withExtendedLifetime(token) {}
  }

  @Test(arguments: [1, 3, 64])
  func `an observation that buffers the oldest elements receives no more than fit`(limit: Int) async
  {
    let (messenger, host, log) = (Messenger<Int>(), SteppedHost(), Log<Int>())
    let token = await host.observe(messenger, .bufferingOldest(limit), log)
    for number in 0..<200 { messenger.send(number) }
    while log.count < limit, !Task.isCancelled { await host.executor.step() }
    messenger.send(200)
    while log.entries.last != 200, !Task.isCancelled { await host.executor.step() }
    #expect(log.entries == Array(0..<limit) + [200])
    withExtendedLifetime(token) {}
  }

  @Test func `an observation with a limit of zero receives only elements that it waits for`() async
  {
    for policy in [BufferingPolicy<Int>.bufferingNewest(0), .bufferingOldest(0)] {
      let (messenger, host, log) = (Messenger<Int>(), SteppedHost(), Log<Int>())
      let token = await host.observe(messenger, policy, log)
      // The registration; the first message starts the task that calls the handlers.
      await host.executor.ran(1)
      messenger.send(2)
      messenger.send(3)
      await host.executor.step()
      #expect(log.entries == [2])
      withExtendedLifetime(token) {}
    }
  }

  @Test
  func `an observation without elements needs no task, and releases its actor when cancelled`()
    async
  {
    actor Screen {
      let parcel: Parcel

      init(_ parcel: Parcel) {
        self.parcel = parcel
      }

      func observe(_ messenger: Messenger<Int>, suspends: Bool) -> ObservationToken {
        suspends
          ? messenger.observe { (_: Int) async in _ = self.parcel }
          : messenger.observe { (_: Int) in _ = self.parcel }
      }
    }
    for suspends in [false, true] {
      let (messenger, census) = (Messenger<Int>(), Census())
      var screen: Screen? = Screen(census.parcel())
      let token = await screen?.observe(messenger, suspends: suspends)
      screen = nil
      #expect(census.living == 1)
      // A cancelled task would still need a turn until it had released its actor.
      token?.cancel()
      #expect(census.living == 0)
      withExtendedLifetime(token) {}
    }
  }

  @Test func `an observation with the largest limits works as without a limit`() async {
    let (messenger, host) = (Messenger<Int>(), SteppedHost())
    let policies: [BufferingPolicy<Int>] = [
      .bufferingOldest(.max), .bufferingOldest(.max), .bufferingNewest(.max - 1),
      .bufferingNewest(.max), .bufferingOldest(.min), .bufferingNewest(.min),
    ]
    let logs = policies.map { _ in Log<Int>() }
    var tokens: [ObservationToken] = []
    for (policy, log) in zip(policies, logs) {
      tokens.append(await host.observe(messenger, policy, log))
    }
    for number in 0..<100 { messenger.send(number) }
    while logs[3].count < 100 { await host.executor.step() }
    for log in logs[..<4] { #expect(log.entries == Array(0..<100)) }
    tokens.removeAll()
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `many observations can be added and cancelled in a time that grows with their number`()
    async
  {
    let messenger = Messenger<Int>()
    let log = Log<Int>()
    let first = messenger.observe { (number: Int) in log.append(-number) }
    var tokens = (0..<30_000).map { number in
      messenger.observe { (_: Int) in if number == 15_000 { log.append(number) } }
    }
    let last = messenger.observe { (number: Int) in log.append(number) }
    messenger.send(1)
    #expect(await log.first(3) == [-1, 15_000, 1])
    // Oldest first, which leaves the most behind.
    for token in tokens { token.cancel() }
    tokens = []
    #expect(messenger.subscriberCount == 2)
    messenger.send(2)
    #expect(await log.first(5).suffix(2) == [-2, 2])
    withExtendedLifetime((first, last)) {}
  }

  @MainActor @Test func `an observation is called where the only one before was cancelled`() async {
    let (messenger, log) = (Messenger<Int>(), Log<Int>())
    for round in 0..<3 {
      let token = messenger.observe { @MainActor (number: Int) in log.append(number) }
      messenger.send(round)
      await log.first(round + 1)
      token.cancel()
    }
    #expect(log.entries == [0, 1, 2])
  }

  @Test func `observations on many actors go with them, and leave the others in order`() async {
    actor Listener {
      func listen(to messenger: Messenger<Int>, _ log: Log<Int>) -> ObservationToken {
        messenger.observe { [self] (number: Int) in
          preconditionIsolated()
          log.append(number)
        }
      }
    }
    let (messenger, log) = (Messenger<Int>(), Log<Int>())
    var tokens: [ObservationToken] = []
    for _ in 0..<3000 { tokens.append(await Listener().listen(to: messenger, log)) }
    for (index, token) in tokens.enumerated() where !index.isMultiple(of: 1000) { token.cancel() }
    #expect(messenger.subscriberCount == 3)
    messenger.send(7)
    messenger.send(8)
    #expect(await log.first(6).sorted() == [7, 7, 7, 8, 8, 8])
    for token in tokens { token.cancel() }
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `an observation of another policy on the same actor does not affect the others`() async
  {
    let (messenger, host) = (Messenger<Int>(), SteppedHost())
    let logs = (0..<3).map { _ in Log<Int>() }
    let policies: [BufferingPolicy<Int>] = [.bufferingNewest(1), .unbounded, .bufferingOldest(2)]
    var tokens: [ObservationToken] = []
    for (policy, log) in zip(policies, logs) {
      tokens.append(await host.observe(messenger, policy, log))
    }
    for number in 0..<10 { messenger.send(number) }
    while logs[1].count < 10, !Task.isCancelled { await host.executor.step() }
    #expect(logs.map(\.entries) == [[9], Array(0..<10), [0, 1]])
    withExtendedLifetime(tokens) {}
  }

  @Test func `an observation of states begins with the current one, also if it skips`() async {
    for policy in [BufferingPolicy<LoadState<Int>>.unbounded, .bufferingNewest(1)] {
      let (publisher, host, log) = (DataPublisher<Int>(), SteppedHost(), Log<Int?>())
      publisher.update(7)
      let token = await host.observe(publisher, policy) { log.append($0.value) }
      await host.executor.step()
      #expect(log.entries == [7])
      publisher.update(8)
      await host.executor.step()
      #expect(log.entries == [7, 8])
      withExtendedLifetime(token) {}
    }
  }

  @MainActor @Test
  func `an observation of states begins with the current one although others on its actor wait`()
    async
  {
    let (publisher, log) = (DataPublisher<Int>(), Log<String>())
    let first = publisher.observe { log.append("first \($0.value ?? 0)") }
    await log.first(1)
    let second = publisher.observe { log.append("second \($0.value ?? 0)") }
    #expect(await log.first(2) == ["first 0", "second 0"])
    publisher.update(1)
    #expect(await log.first(4).suffix(2) == ["first 1", "second 1"])
    withExtendedLifetime((first, second)) {}
  }

  @Test func `an observation of states skips a replay that is out of date`() async {
    let (publisher, host, log) = (DataPublisher<Int>(), SteppedHost(), Log<Int?>())
    let token = await host.observe(publisher, .bufferingNewest(1)) { log.append($0.value) }
    publisher.update(1)
    publisher.update(2)
    await host.executor.step()
    #expect(log.entries == [2])
    withExtendedLifetime(token) {}
  }

  @Test func `an observation that skips keeps no more than its limit`() async {
    let (messenger, host) = (Messenger<Parcel>(), SteppedHost())
    let (census, log) = (Census(), Log<Int>())
    let token = await host.observe(messenger, .bufferingNewest(1)) { log.append($0.number) }
    for number in 0..<1000 { messenger.send(census.parcel(number)) }
    #expect(census.living <= 16)
    await host.executor.step()
    #expect(log.entries == [999])
    withExtendedLifetime(token) {}
  }

  @Test func `an observation that is cancelled while it runs gives its backlog back`() async {
    let messenger = Messenger<Parcel>()
    let (census, begun, gate) = (Census(), Log<Int>(), Log<Void>())
    let token = messenger.observe { (parcel: Parcel) async in
      begun.append(parcel.number)
      // It ignores cancellation.
      await Task.detached { _ = await gate.first(1) }.value
    }
    for number in 0..<100 { messenger.send(census.parcel(number)) }
    await begun.first(1)
    token.cancel()
    #expect(messenger.subscriberCount == 0)
    #expect(census.living <= 1)
    gate.append(())
    await census.falls(to: 0)
  }

  @Test func `an observation whose actor was released retains nothing`() async {
    let messenger = Messenger<Int>()
    let census = Census()
    do {
      let host = SteppedHost(holding: census.parcel())
      let log = Log<Int>()
      let token = await host.observe(messenger, .unbounded, log)
      messenger.send(1)
      await host.executor.step()
      #expect(log.entries == [1])
      token.cancel()
      await host.executor.step()
    }
    // The task of the handler leaves the actor when it ends, after its last job there.
    await census.falls(to: 0)
    #expect(census.living == 0)
    #expect(messenger.subscriberCount == 0)
  }
}
