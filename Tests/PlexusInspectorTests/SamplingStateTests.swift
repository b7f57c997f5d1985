import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import LoopbackOrigin
@testable import PlexusInspector

@Suite struct `Sampling of an inspector` {
  private let clock = ManualClock()
  private let core: InspectorCore

  init() {
    core = InspectorCore(showsValues: false, clock: clock)
  }

  private func sampled(_ count: Int, _ calls: Log<Int>) async {
    while calls.count < count {
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(50))
    }
  }

  /// Adds a text, and returns a log of its requests.
  private func addText() -> Log<Int> {
    let calls = Log<Int>()
    core.add(
      TextSource {
        calls.append(1)
        return ""
      },
      named: "text"
    )
    return calls
  }

  @Test(.guarantee(.inspectorSamplesForOpenPages))
  func `nothing is sampled unless a page is open`() async throws {
    let calls = addText()
    #expect(core.pageCount == 0 && clock.nextDeadline == nil && calls.count == 0)
    let stream = try #require(core.openPage(showing: 1))
    await calls.first(1)
    await clock.sleepers(1)
    #expect(core.pageCount == 1)
    stream.endForTest()
    #expect(core.pageCount == 0 && clock.nextDeadline == nil, "The task has ended")
    let count = calls.count
    clock.advance(by: .seconds(10))
    #expect(calls.count == count)
  }

  @Test(.guarantee(.inspectorSamplesForOpenPages))
  func `a text is requested four times a second at most, however often a page connects`()
    async throws
  {
    let calls = addText()
    for second in 0..<3 {
      for _ in 0..<20 {
        let stream = try #require(core.openPage(showing: 1))
        await clock.sleepers(1)
        stream.endForTest()
        #expect(calls.count <= second + 1)
      }
      await calls.first(second + 1)
      clock.advance(by: .seconds(1))
    }
    #expect(calls.count == 3)
  }

  @Test func `what takes long to make is made again after twenty times as long`() {
    let start = ContinuousClock.now
    var spared = Spared<Int>()
    #expect(spared.value(at: start) == nil)
    spared.keep(1, from: start, to: start + .seconds(1))
    #expect(spared.value(at: start + .seconds(20)) == 1)
    #expect(spared.value(at: start + .seconds(21)) == nil)
    spared.keep(2, from: start + .seconds(30), to: start + .seconds(30))
    #expect(spared.value(at: start + .seconds(30)) == nil, "What takes no time is not kept")
  }

  @Test(.guarantee(.inspectorSamplesForOpenPages))
  func `a page is sent at most four frames a second`() async throws {
    let stream = try #require(core.openPage(showing: nil))
    var frames = 0
    for _ in 0..<20 {
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(50))
      await clock.sleepers(1)
      if case .send = stream.next() { frames += 1 }
      stream.noteSent()
    }
    #expect(frames <= 8 && frames >= 1)
    #expect(clock.now >= ManualClock().now)
    stream.endForTest()
  }

  @Test(.guarantee(.inspectorSamplesForOpenPages))
  func `a page that does not read is sent the newest state once it does`() async throws {
    let value = CurrentValue(0)
    core.add(BroadcasterSource(value), named: "value")
    let stream = try #require(core.openPage(showing: nil))
    for _ in 0..<10 {
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(250))
    }
    #expect(!stream.isWritable)
    guard case .send = stream.next() else { throw Broken(reason: "No frame was sent") }
    #expect(stream.next() == .wait)
    let token = value.observe { _ in }
    stream.noteSent()
    var frame = ""
    while frame.isEmpty {
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(250))
      if case .send(let bytes) = stream.next() { frame = String(decoding: bytes, as: UTF8.self) }
    }
    #expect(frame.contains("\"subscribers\":1"))
    token.cancel()
    stream.endForTest()
  }

  @Test func `at most four pages are open`() {
    let streams = (0..<5).map { _ in core.openPage(showing: nil) }
    #expect(streams.map { $0 != nil } == [true, true, true, true, false])
    streams[2]?.endForTest()
    #expect(core.openPage(showing: nil) != nil)
    core.stop()
    #expect(core.pageCount == 0 && core.openPage(showing: nil) == nil)
  }

  @Test func `at most 256 sources are shown, and ended ones make room`() {
    var kept: [Messenger<Int>] = []
    for number in 0..<255 {
      let messenger = Messenger<Int>()
      kept.append(messenger)
      core.add(BroadcasterSource(messenger), named: "\(number)")
    }
    core.add(BroadcasterSource(Messenger<Int>()), named: "ended")
    core.add(TextSource { "" }, named: "one")
    core.add(TextSource { "" }, named: "two")
    #expect(core.answer(on: 257) { _ in .null } == .found(.null))
    #expect(core.answer(on: 258) { _ in .null } == .missing)
    #expect(core.answer(on: 256) { _ in .null } == .missing)
    withExtendedLifetime(kept) {}
  }

  @Test func `one question is answered at a time`() {
    core.add(TextSource { "" }, named: "text")
    let answer = core.answer(on: 1) { _ in
      #expect(core.answer(on: 1) { _ in .null } == .busy)
      return 1
    }
    #expect(answer == .found(1))
    #expect(core.answer(on: 1) { _ in nil } == .missing)
    #expect(core.answer(on: 2) { _ in 1 } == .missing)
  }
}

extension OriginStream {
  /// Ends the stream as the client does.
  fileprivate func endForTest() { close() }
}

@Suite struct `The log of an inspector` {
  private func numbers(_ state: JournalState<Int>, since revision: Int, limit: Int = 100) -> [Int] {
    state.changes(since: revision, limit: limit).map(\.number)
  }

  @Test func `a page gets the records that are new or have changed since its revision`() {
    var state = JournalState<Int>(capacity: 10)
    for number in 1...4 { _ = state.append(number, at: nil, isOpen: number == 2) }
    #expect(numbers(state, since: 0) == [1, 2, 3, 4])
    let revision = state.revision
    #expect(numbers(state, since: revision) == [])
    state.settle([2])
    #expect(numbers(state, since: revision) == [2])
    #expect(state.item(2)?.isOpen == false)
    _ = state.append(5, at: 1, isOpen: false)
    #expect(numbers(state, since: revision) == [2, 5])
    #expect(numbers(state, since: 0, limit: 2) == [4, 5])
    #expect(state.count == 5 && state.recentCount == 1)
  }

  @Test func `a record that has changed for the last time is sent again, once`() async {
    let (isFinal, read) = (Guarded(false), Log<Int>())
    let journal = Journal<Int>(
      capacity: 10,
      number: { record in
        read.append(record)
        return nil
      },
      isOpen: { $0 == 7 && !isFinal.withLock { $0 } }
    )
    func numbers(since revision: Int) -> (records: [Int], revision: Int) {
      let changes = journal.changes(since: revision, limit: 10)
      return (changes.items.map(\.record).filter { $0 == 7 }, changes.revision)
    }
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    continuation.yield(7)
    continuation.yield(8)
    let pace = Pace()
    pace.end()
    journal.read(stream, pace: pace)
    // The first record is kept once the second one is read.
    await read.first(2)
    let first = numbers(since: 0)
    #expect(first.records == [7] && numbers(since: first.revision).records == [])
    isFinal.withLock { $0 = true }
    let second = numbers(since: first.revision)
    #expect(second.records == [7] && numbers(since: second.revision).records == [])
    journal.stop()
  }

  @Test func `numbers of its records count the ones that were never read, also as recent ones`() {
    var state = JournalState<Int>(capacity: 10)
    for (number, time) in [(400, nil), (401, 1), (1_000, 2)] as [(Int, Double?)] {
      _ = state.append(number, at: time, isOpen: false, number: number)
    }
    #expect(state.count == 1_000 && state.recentCount == 600)
    #expect(numbers(state, since: 0) == [400, 401, 1_000])
    #expect(state.item(401)?.record == 401 && state.item(402) == nil && state.item(0) == nil)
    var later = JournalState<Int>(capacity: 10)
    _ = later.append(5_000, at: 1, isOpen: false, number: 5_000)
    #expect(later.count == 5_000 && later.recentCount == 1, "The others are from before")
    // A log that begins again has smaller numbers.
    _ = state.append(1, at: 3, isOpen: false, number: 1)
    #expect(state.count == 1_001 && state.item(1_001)?.record == 1)
  }

  @Test func `it keeps the newest records, however many there are`() {
    var state = JournalState<Int>(capacity: 100)
    var dropped = 0
    for number in 1...10_000 { dropped += state.append(number, at: 0, isOpen: false).count }
    #expect(state.items.count <= 125 && state.items.count + dropped == 10_000)
    #expect(numbers(state, since: 0, limit: 1_000) == Array(9_901...10_000))
    #expect(state.item(10_000)?.record == 10_000 && state.item(1) == nil)
    #expect(state.item(10_001) == nil)
  }
}

@Suite struct `The choice of entries for a window` {
  private func row(_ key: Int, age: Int, cost: Int = 1) -> EntryRow {
    EntryRow(
      hash: key,
      key: { ("\(key)", "\(key)") },
      value: nil,
      error: nil,
      state: key % 3 == 0 ? .stale : .fresh,
      age: .seconds(age),
      timeLeft: key % 2 == 0 ? .seconds(key) : nil,
      tags: [],
      cost: cost
    )
  }

  @Test(arguments: ["key", "age", "left", "cost", "state"], [true, false])
  func `windows have every entry once, in order`(order: String, isDescending: Bool) throws {
    var generator = SeededRandom(seed: 7)
    let rows = (0..<9_000).map {
      row($0, age: Int.random(in: 0..<50, using: &generator), cost: $0 % 7)
    }
    var query = EntryQuery()
    query.order = try #require(EntryQuery.Order(rawValue: order))
    query.isDescending = isDescending
    var keys: [String] = []
    var positions: [EntryQuery.Position] = []
    while true {
      var selection = EntrySelection(query, now: 1_000)
      for row in rows.shuffled(using: &generator) { selection.consider(row) }
      let (window, hasMore) = selection.finish()
      #expect(selection.matchCount == 9_000)
      keys += window.map(\.position.key)
      positions += window.map(\.position)
      query.position = window.last?.position
      if !hasMore { break }
    }
    #expect(keys.count == 9_000 && Set(keys).count == 9_000)
    #expect(positions == (isDescending ? positions.sorted().reversed() : positions.sorted()))
  }

  @Test(arguments: [true, false])
  func `windows in the order of keys are found by one look at the keys`(isDescending: Bool) {
    var generator = SeededRandom(seed: 11)
    let keys = (0..<9_000).map(String.init).shuffled(using: &generator)
    var query = EntryQuery()
    query.isDescending = isDescending
    var found: [String] = []
    while true {
      var candidates = KeySelection(query)
      var selection = EntrySelection(query, now: 0)
      var count = 0
      for key in keys where candidates.includes(key, hash: 0) {
        count += 1
        selection.consider(row(Int(key) ?? -1, age: 1))
      }
      #expect(candidates.matchCount == 9_000 && count < 9_000)
      let (window, hasMore) = selection.finish()
      found += window.map(\.position.key)
      query.position = window.last?.position
      if !hasMore { break }
    }
    #expect(found == (isDescending ? keys.sorted().reversed() : keys.sorted()))
  }

  @Test func `a look at entries ends after two seconds`() {
    let start = ContinuousClock.now
    var scan = EntryScan(EntryQuery(), until: start - .nanoseconds(1))
    let key = CacheProbe.Key(hash: 1) { "key" }
    let count = (0..<1_000).filter { _ in scan.includes(key, part: 0, of: 1) }.count
    #expect(count == 0 && scan.isOver)
    var later = EntryScan(EntryQuery(), until: start + .seconds(1_000))
    #expect((0..<1_000).allSatisfy { _ in later.includes(key, part: 0, of: 1) })
    #expect(!later.isOver && EntryScan.patience == .seconds(2))
  }

  @Test func `only entries of a state are chosen`() {
    var query = EntryQuery()
    query.state = .stale
    var selection = EntrySelection(query, now: 0)
    for key in 0..<9 { selection.consider(row(key, age: 1)) }
    #expect(selection.finish().window.map(\.position.key) == ["0", "3", "6"])
  }
}
