import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A snapshot of subscribers` {
  /// The counts of a snapshot.
  private func counts(_ source: some Broadcaster) -> [[Int?]] {
    source.subscriberSnapshots().map { [$0.bufferedCount, $0.droppedCount] }
  }

  @Test func `a snapshot of subscribers has the buffered and dropped elements of every stream`()
    async
  {
    let messenger = Messenger<Int>()
    #expect(messenger.subscriberSnapshots().isEmpty)
    let all = messenger.subscription()
    let newest = messenger.subscription(bufferingPolicy: .bufferingNewest(2))
    let oldest = messenger.subscription(bufferingPolicy: .bufferingOldest(3))
    let many = messenger.subscription(bufferingPolicy: .bufferingNewest(100))
    #expect(counts(messenger) == [[0, 0], [0, 0], [0, 0], [0, 0]])
    for number in 0..<5 { messenger.send(number) }
    #expect(counts(messenger) == [[5, 0], [2, 3], [3, 2], [5, 0]])
    let snapshots = messenger.subscriberSnapshots()
    #expect(snapshots.map(\.kind) == [.stream, .stream, .stream, .stream])
    #expect(snapshots.map(\.id) == snapshots.map(\.id).sorted())
    #expect(Set(snapshots.map(\.id)).count == 4)
    #expect(await all.first(2) == [0, 1])
    #expect(await newest.first(1) == [3])
    #expect(await oldest.first(3) == [0, 1, 2])
    #expect(counts(messenger) == [[3, 0], [1, 3], [0, 2], [5, 0]])
    #expect(messenger.sentCount == 5)
    withExtendedLifetime(many) {}
  }

  @Test func `a snapshot of subscribers has the states that a new one has not read`() {
    let value = CurrentValue(1)
    #expect(value.subscriberSnapshots().isEmpty)
    // The window of a hub that has had no subscriber is known from the first snapshot with one.
    let first = value.subscription()
    #expect(value.subscriberSnapshots().count == 1)
    let states = value.subscription()
    value.update { $0 = 2 }
    value.update { $0 = 3 }
    #expect(counts(value).last == [1, 2])
    withExtendedLifetime((first, states)) {}
  }

  @Test func `a snapshot of subscribers has handlers with the elements that wait for them`()
    async
  {
    let (messenger, gate) = (Messenger<Int>(), Gate())
    let token = messenger.observe { (_: Int) async in try? await gate.wait() }
    let plain = messenger.observe { (_: Int) in }
    messenger.send(1)
    await gate.arrivals(1)
    for number in 2...4 { messenger.send(number) }
    let snapshots = messenger.subscriberSnapshots()
    #expect(snapshots.map(\.kind) == [.handler, .handler])
    #expect(snapshots.first?.bufferedCount == 3)
    #expect(snapshots.map(\.droppedCount) == [nil, nil])
    gate.open()
    withExtendedLifetime((token, plain)) {}
  }

  @Test func `a snapshot of subscribers learns of an earlier stream once it waits`() async {
    let messenger = Messenger<Int>()
    let idle = messenger.subscription()
    let newest = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    let recorder = Recorder(messenger.subscription())
    messenger.send(1)
    #expect(await recorder.first(1) == [1])
    let earlier = messenger.subscriberSnapshots().filter { $0.id < 0 }
    #expect(earlier.count >= 2)
    #expect(earlier.allSatisfy { $0.bufferedCount == nil && $0.droppedCount == nil })
    #expect(messenger.subscriberSnapshots().count == 3)
    #expect(Set(messenger.subscriberSnapshots().map(\.id)).count == 3)
    // Both read what was sent, and then wait.
    let readers = [Recorder(idle), Recorder(newest)]
    for reader in readers { _ = await reader.first(1) }
    messenger.send(2)
    for reader in readers + [recorder] { _ = await reader.first(2) }
    #expect(messenger.subscriberSnapshots().allSatisfy { $0.id >= 0 && $0.bufferedCount == 0 })
  }

  @Test func `a snapshot of subscribers has none that has left, and none of a finished source`()
    async
  {
    let messenger = Messenger<Int>()
    _ = messenger.subscriberSnapshots()
    var kept: [Subscription<Int>] = []
    for policy in [Policy.unbounded, .newest(1), .oldest(1)] {
      kept.append(messenger.subscription(bufferingPolicy: policy()))
    }
    _ = messenger.subscriberSnapshots()
    kept.removeLast()
    kept.removeFirst()
    messenger.observe(as: Parcel(0)) { (_: Parcel, _: Int) in }
    #expect(messenger.subscriberSnapshots().count == 1)
    kept.append(messenger.subscription())
    messenger.finish()
    #expect(messenger.subscriberSnapshots().isEmpty)
    #expect(await kept[1].all().isEmpty)
  }

  @Test func `a snapshot of subscribers follows one that becomes a handler`() {
    let value = CurrentValue(1)
    let first = value.subscription()
    _ = value.subscriberSnapshots()
    let token = Forwarder(source: value).observe(bufferingPolicy: .bufferingNewest(1)) { _ in }
    #expect(value.subscriberSnapshots().map(\.kind) == [.stream, .handler])
    withExtendedLifetime((first, token)) {}
  }

  @Test func `a snapshot of subscribers keeps none of them alive`() {
    let messenger = Messenger<Int>()
    _ = messenger.subscription()
    var stream: Subscription<Int>? = messenger.subscription()
    #expect(messenger.subscriberSnapshots().count == 1)
    stream = nil
    #expect(messenger.subscriberCount == 0)
    _ = stream
  }

  @Test(arguments: [0, 1, 5, 100])
  func `a snapshot of subscribers has at most as many as requested`(limit: Int) {
    let messenger = Messenger<Int>()
    _ = messenger.subscriberSnapshots()
    var kept: [Subscription<Int>] = []
    for policy in [Policy.unbounded, .newest(1), .oldest(1)] {
      for _ in 0..<2 { kept.append(messenger.subscription(bufferingPolicy: policy())) }
    }
    let tokens = (0..<2).map { _ in messenger.observe { (_: Int) async in } }
    #expect(messenger.subscriberSnapshots(limit: limit).count == min(limit, 8))
    withExtendedLifetime((kept, tokens)) {}
  }

  @Test func `a snapshot of subscribers connects, creates and starts nothing`() {
    let value = CurrentValue(1)
    let derived = value.map { $0 + 1 }
    let combined = combine(value, value) { $0 + $1 }
    #expect(derived.subscriberSnapshots().isEmpty && combined.subscriberSnapshots().isEmpty)
    #expect(derived.sentCount == 0 && combined.sentCount == 0)
    #expect(value.subscriberCount == 0)
    let map = MultiplexerMap<Int, Int> { $0 }
    #expect(map[1].subscriberSnapshots().isEmpty && map[1].sentCount == 0)
    let shared = AsyncStream<Int> { nil }.broadcast()
    #expect(shared.subscriberSnapshots().isEmpty)
    let subscription = derived.subscription(bufferingPolicy: .unbounded)
    #expect(derived.subscriberSnapshots().count == 1)
    #expect(value.subscriberSnapshots().map(\.kind) == [.handler])
    withExtendedLifetime(subscription) {}
  }

  @Test func `a snapshot of subscribers is empty for a broadcaster of another module`() {
    let messenger = Messenger<Int>()
    let forwarder = Forwarder(source: messenger)
    let stream = forwarder.subscribe(bufferingPolicy: .unbounded)
    #expect(forwarder.subscriberSnapshots().isEmpty)
    #expect(forwarder.sentCount == nil)
    #expect(messenger.subscriberSnapshots().count == 1)
    withExtendedLifetime(stream) {}
  }

  @Test func `a snapshot of subscribers can be taken while streams come, read and go`() async {
    let messenger = Messenger<Int>()
    await withTaskGroup { group in
      for task in 0..<4 {
        group.addTask {
          for round in 0..<300 {
            let policy = [Policy.unbounded, .newest(1), .oldest(2)][(round + task) % 3]
            let subscription = messenger.subscription(bufferingPolicy: policy())
            messenger.send(round)
            _ = messenger.subscriberSnapshots()
            _ = await subscription.first(1)
          }
        }
      }
    }
    #expect(messenger.subscriberSnapshots().isEmpty)
    #expect(messenger.subscriberCount == 0)
  }
}
