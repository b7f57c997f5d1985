import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A combination` {
  struct Form: Sendable { var text = "a", count = 0, isSent = false }

  @Test(.guarantee(.combinationsPublishEveryChange))
  func `a combination is made from the newest elements of any number of states`() async {
    let (name, count, isOpen) = (CurrentValue("Ada"), CurrentValue(1), CurrentValue(true))
    let title = combine(name, count, isOpen) { "\($0) \($1) \($2)" }
    let single = combine(count) { -$0 }
    #expect(title.current == "Ada 1 true")
    #expect(single.current == -1)
    let subscription = title.subscription(bufferingPolicy: .unbounded)
    #expect(title.current == "Ada 1 true")
    name.value = "Grace"
    count.value = 2
    count.value = 2
    isOpen.value = false
    #expect(title.current == "Grace 2 false")
    name.finish()
    count.finish()
    isOpen.finish()
    #expect(
      await subscription.all()
        == ["Ada 1 true", "Grace 1 true", "Grace 2 true", "Grace 2 true", "Grace 2 false"]
    )
    #expect(single.current == -2)
  }

  @Test func `a combination of nothing has one element and ends`() async {
    let constant = combine { 7 }
    #expect(constant.current == 7)
    #expect(await constant.subscription(bufferingPolicy: .unbounded).all() == [7])
    #expect(await constant.subscribe().all() == [7])
  }

  @Test(.guarantee(.partsAreCombinedConsistently))
  func `a combination publishes one element for an element of a state, however many parts change`()
    async
  {
    let form = CurrentValue(Form())
    let (text, count) = (form.select(\.text), form.map(\.count))
    let both = combine(text, count, form) { "\($0)\($1)\($2.count)" }
    let whole = combine(both, text.select { $0 + "!" }, both.map { $0 + "?" }) { "\($0)\($1)\($2)" }
    let elements = whole.subscription(bufferingPolicy: .unbounded)
    form.value = Form(text: "b", count: 1)
    form.update { $0.count = 2 }
    #expect(whole.current == "b22b!b22?")
    form.finish()
    #expect(await elements.all() == ["a00a!a00?", "b11b!b11?", "b22b!b22?"])
  }

  @Test(.guarantee(.partsAreCombinedConsistently))
  func `a combination of selected parts publishes nothing if none of them changes`() async {
    let form = CurrentValue(Form())
    let other = CurrentValue(0)
    let parts = combine(form.select(\.text), other) { "\($0)\($1)" }
    let calls = Tally()
    let counted = combine(parts, form.select(\.isSent)) { text, isSent in
      calls.increment()
      return isSent ? text.uppercased() : text
    }
    let elements = counted.subscription(bufferingPolicy: .unbounded)
    for number in 1...9 { form.update { $0.count = number } }
    other.value = 1
    form.update { $0.count = 10 }
    form.update { $0.isSent = true }
    form.finish()
    other.finish()
    #expect(await elements.all() == ["a0", "a1", "A1"])
    #expect(calls.value == 3)
  }

  @Test(.guarantee(.combinationsPublishEveryChange))
  func `a combination runs its closures once per element for all subscribers`() async {
    let value = CurrentValue(1)
    let (maps, combinations) = (Tally(), Tally())
    let mapped = value.map { number in
      maps.increment()
      return 10 * number
    }
    let sum = combine(mapped, mapped.select { $0 + 1 }, mapped.map { $0 + 2 }) { a, b, c in
      combinations.increment()
      return a + b + c
    }
    let streams = (0..<100).map { _ in sum.subscription(bufferingPolicy: .unbounded) }
    #expect(maps.value == 1)
    value.value = 2
    #expect(maps.value == 2, "it has run when the call that sets the value returns")
    #expect(combinations.value == 2)
    for _ in 0..<9 { #expect(sum.current == 63) }
    #expect(combinations.value == 2, "reading it evaluates nothing")
    value.finish()
    for stream in streams { #expect(await stream.all() == [33, 63]) }
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `a combination is subscribed to each state once, and only while it has subscribers`() {
    let (form, other) = (CurrentValue(Form()), CurrentValue(1))
    let parts = combine(form.select(\.text), form.map(\.count), form, other) {
      "\($0)\($1)\($2)\($3)"
    }
    #expect(form.subscriberCount == 0)
    _ = parts.current
    #expect(form.subscriberCount == 0)
    for _ in 0..<3 {
      var streams = [parts.subscribe(), parts.subscribe()]
      let token = parts.observe { _ in }
      #expect(parts.subscriberCount == 3)
      #expect([form.subscriberCount, other.subscriberCount] == [1, 1])
      streams = []
      #expect(parts.subscriberCount == 1)
      #expect([form.subscriberCount, other.subscriberCount] == [1, 1])
      token.cancel()
      #expect(parts.subscriberCount == 0)
      #expect([form.subscriberCount, other.subscriberCount] == [0, 0])
      withExtendedLifetime(streams) {}
    }
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `a combination ends when all sources have ended, and keeps the last elements of those`()
    async
  {
    let (one, two) = (CurrentValue(1), CurrentValue(10))
    let sum = combine(one.select { $0 }, two) { $0 + $1 }
    let elements = sum.subscription(bufferingPolicy: .unbounded)
    one.finish()
    two.value = 20
    let late = sum.subscription(bufferingPolicy: .unbounded)
    two.value = 30
    two.finish()
    #expect(await elements.all() == [11, 21, 31])
    #expect(await late.all() == [21, 31])
    #expect(await sum.subscription(bufferingPolicy: .unbounded).all() == [31])
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `a combination keeps its sources, and its subscribers do not`() async {
    weak var source: CurrentValue<Int>?
    var stream: AsyncStream<Int>?
    do {
      let value = CurrentValue(1)
      source = value
      stream = combine(value.map { $0 + 1 }, value) { $0 + $1 }.subscribe()
    }
    #expect(source == nil)
    #expect(await stream?.all() == [3])
    var sum: (any StatefulBroadcaster<Int>)?
    do {
      let value = CurrentValue(1)
      source = value
      sum = combine(value, value.select { $0 }) { $0 + $1 }
    }
    #expect(source != nil)
    sum = nil
    #expect(source == nil)
    withExtendedLifetime(sum) {}
  }

  @Test(.guarantee(.combinationsSubscribeOnce))
  func `a combination frees its closures and elements with the last subscriber`() {
    let value = CurrentValue(1)
    weak var captured: Parcel?
    var stream: AsyncStream<Int>?
    do {
      let parcel = Parcel(1)
      captured = parcel
      stream = combine(value.map { _ in parcel }) { $0.number }.subscribe()
    }
    #expect(captured != nil)
    withExtendedLifetime(stream) {}
    stream = nil
    #expect(captured == nil)
  }

  @Test func `a combination removes duplicates only with removeDuplicates`() async {
    let value = CurrentValue(1)
    let parity = combine(value) { $0 % 2 }
    let distinct = parity.removeDuplicates()
    let all = parity.subscription(bufferingPolicy: .unbounded)
    let different = distinct.subscription(bufferingPolicy: .unbounded)
    for number in [3, 5, 6] { value.value = number }
    #expect(distinct.current == 0)
    value.finish()
    #expect(await all.all() == [1, 1, 1, 0])
    #expect(await different.all() == [1, 0])
  }

  @Test(.guarantee(.combinationsPublishEveryChange))
  func `a combination whose closure sets a source publishes one element after the other`() async {
    let (number, limit) = (CurrentValue(0), CurrentValue(0))
    let sum = combine(number, limit) { value, limit in
      if value < limit { number.value = value + 1 }
      return value
    }
    let elements = sum.subscription(bufferingPolicy: .unbounded)
    limit.value = 3
    #expect(sum.current == 3)
    #expect(await elements.first(5) == [0, 0, 1, 2, 3])
  }

  @Test(.guarantee(.combinationsPublishEveryChange))
  @MainActor
  func `a combination is observed on the main actor like any state`() {
    let (name, count) = (CurrentValue("a"), CurrentValue(0))
    let shown = ObservedValue(combine(name, count) { "\($0)\($1)" })
    #expect(shown.value == "a0")
    count.value = 1
    name.value = "b"
    #expect(shown.value == "b1")
  }

  @Test(.guarantee(.combinationsAreReset))
  func `a combination delivers nothing from before a reset of a source`() async {
    let publisher = DataPublisher<Int>()
    let count = CurrentValue(0)
    let both = combine(publisher.map(\.value), count) { "\($0 ?? -1) \($1)" }
    let elements = both.subscription(bufferingPolicy: .unbounded)
    publisher.update(1)
    count.value = 1
    publisher.update(2)
    publisher.reset()
    let late = both.subscription(bufferingPolicy: .unbounded)
    count.value = 2
    #expect(await elements.first(2) == ["-1 1", "-1 2"])
    #expect(await late.first(2) == ["-1 1", "-1 2"])
  }

  @Test(.guarantee(.combinationsAreReset))
  func `a combination of a part that a reset does not change publishes it once more`() async {
    let publisher = DataPublisher<Int>()
    publisher.update(1)
    let parts = combine(publisher.select { ($0.value ?? 0) >= 0 }) { $0 }
    let elements = parts.subscription(bufferingPolicy: .unbounded)
    publisher.reset()
    let late = parts.subscription(bufferingPolicy: .unbounded)
    publisher.update(-1)
    #expect(await elements.first(2) == [true, false])
    #expect(await late.first(2) == [true, false])
  }

  @Test(.guarantee(.partsAreCombinedConsistently))
  func `two references to the same value of a cache count as one source`() async {
    let profile = Multiplexer<Int> { 1 }
    let names = MultiplexerMap<Int, Int> { $0 }
    let all = combine(
      profile.map { $0.value ?? 0 },
      profile.refresh().map { $0.value ?? 0 },
      names[1].map { $0.value ?? 0 },
      names[1].select { $0.value ?? 0 }
    ) { [$0, $1, $2, $3] }
    let elements = all.subscription(bufferingPolicy: .unbounded)
    #expect([profile.subscriberCount, names[1].subscriberCount] == [1, 1])
    profile.store(5)
    names[1].store(7)
    #expect(await elements.first(3) == [[0, 0, 0, 0], [5, 5, 0, 0], [5, 5, 7, 7]])
    try? await profile.clear()
    #expect(all.current == [0, 0, 7, 7])
  }

  @Test func `a combination accepts broadcasters of a user, and its result is one of them`() async {
    let value = CurrentValue(1)
    let forwarded = ForwardedState(source: value)
    let sum = combine(forwarded, forwarded.map { 10 * $0 }, value) { $0 + $1 + $2 }
    #expect(sum.current == 12)
    let nested = combine(ForwardedState(source: sum), value) { $0 + $1 }
    let elements = nested.subscription(bufferingPolicy: .unbounded)
    value.value = 2
    #expect(nested.current == 26)
    value.finish()
    let all = await elements.all()
    #expect(all.first == 13)
    #expect(all.last == 26)
  }
}

/// A broadcaster of a user's that forwards another one.
struct ForwardedState<Source: StatefulBroadcaster>: StatefulBroadcaster {
  let source: Source

  var current: Source.Element { source.current }

  var subscriberCount: Int { source.subscriberCount }

  func subscription(
    bufferingPolicy: BufferingPolicy<Source.Element>
  ) -> Subscription<Source.Element> {
    source.subscription(bufferingPolicy: bufferingPolicy)
  }
}
