import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `A log index` {
  private typealias Record = (kind: LogRecord.Kind, key: String, payload: String)

  private func bytes(_ records: [Record]) -> [[UInt8]] {
    records.map { LogRecord.encode($0.kind, key: $0.key, payload: $0.payload.utf8) }
  }

  /// The payloads of a log with these bytes, and the end of its last whole record.
  private func scan(_ log: [UInt8]) throws -> (payloads: [String: String], end: Int) {
    var index = LogIndex()
    var window = LogWindow(size: log.count) { Array(log[$0..<$0 + $1]) }
    let end = try index.scan(&window, from: 0)
    #expect(index.liveByteCount == index.places.values.reduce(0) { $0 + $1.byteCount })
    let payloads = index.places.mapValues { place in
      let record = LogRecord.decode(Array(log[place.offset..<place.offset + place.byteCount]))
      return record.map { String(decoding: $0.payload, as: UTF8.self) } ?? "unreadable"
    }
    return (payloads, end)
  }

  @Test(arguments: [nil, "", "W/\"tag\""])
  func `a record is read as it was written`(validator: String?) throws {
    let time = Duration(secondsComponent: -3, attosecondsComponent: -7)
    for key in hostileKeys {
      let bytes = LogRecord.encode(
        .entry,
        key: key,
        storedAt: time,
        validator: validator,
        payload: "payload".utf8
      )
      let record = try #require(LogRecord.decode(bytes))
      #expect(record.label.key == key)
      #expect(record.label.validator == validator)
      #expect(record.label.storedAt == time)
      #expect(record.payload == Array("payload".utf8))
    }
  }

  @Test func `a record with any bit changed, any byte missing or one too many is none`() {
    let bytes = LogRecord.encode(.entry, key: "k", validator: "v", payload: "payload".utf8)
    for index in bytes.indices {
      for bit in 0..<8 {
        var damaged = bytes
        damaged[index] ^= 1 << bit
        #expect(LogRecord.decode(damaged) == nil)
      }
      #expect(LogRecord.decode(Array(bytes[..<index])) == nil)
    }
    #expect(LogRecord.decode(bytes + [0]) == nil)
  }

  @Test func `later records replace and remove earlier ones`() throws {
    let log = bytes([
      (.entry, "a", "1"), (.entry, "b", "2"), (.entry, "a", "3"), (.removal, "b", ""),
      (.seal, "", ""),
      (.removal, "absent", ""),
    ])
    let (payloads, end) = try scan(log.flatMap(\.self))
    #expect(payloads == ["a": "3"])
    #expect(end == log.joined().count)
  }

  @Test func `the end of a truncated write is distinguished from damage by what follows`() throws {
    let records = bytes([(.entry, "a", "1"), (.entry, "b", "2"), (.entry, "a", "3")])
    let before = records[0] + records[1]
    for length in 0..<records[2].count {
      let (payloads, end) = try scan(before + records[2].prefix(length))
      #expect(payloads == ["a": "1", "b": "2"])
      #expect(end == before.count)
    }
  }

  @Test func `what another process is writing is not mistaken for damage`() throws {
    let records = bytes([(.entry, "a", "1"), (.entry, "b", "2"), (.entry, "c", "3")])
    for length in 0..<records[1].count {
      // Of two records that are being written, the second can be visible before the first.
      let hole = [UInt8](repeating: 0, count: records[1].count - length)
      let log = records[0] + records[1].prefix(length) + hole + records[2]
      var index = LogIndex()
      var window = LogWindow(size: log.count) { Array(log[$0..<$0 + $1]) }
      #expect(try index.scan(&window, from: 0, stopsAtDamage: true) == records[0].count)
      #expect(Array(index.places.keys) == ["a"])
    }
  }

  @Test func `damage to a payload costs that entry, damage to a label all before it`() throws {
    let records = bytes([
      (.entry, "a", "1"), (.entry, "b", "2"), (.entry, "a", "3"), (.entry, "c", "4"),
    ])
    let start = records[0].count + records[1].count
    let log = records.flatMap(\.self)
    for index in start..<start + records[2].count {
      var damaged = log
      damaged[index] ^= 0x10
      let isPayload = index == start + records[2].count - 1
      #expect(try scan(damaged).payloads == (isPayload ? ["b": "2", "c": "4"] : ["c": "4"]))
    }
  }

  @Test func `a record inside a payload is not mistaken for one`() throws {
    let inner = LogRecord.encode(.entry, key: "inner", payload: "wrong".utf8)
    let outer = LogRecord.encode(.entry, key: "outer", payload: inner)
    let last = LogRecord.encode(.entry, key: "last", payload: "right".utf8)
    #expect(try scan(outer + last).payloads.keys.sorted() == ["last", "outer"])
  }

  @Test(.guarantee(.logCompactsItself), arguments: 0..<20 as Range<UInt64>)
  func `whatever bytes a file holds, they are read without harm`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let whole = LogRecord.encode(.entry, key: "a", payload: "1".utf8)
    var log: [UInt8] = []
    for _ in 0..<30 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0: log += whole
      case 1: log += whole.shuffled(using: &random)
      case 2: log += whole.prefix(.random(in: 0..<whole.count, using: &random))
      default:
        log += (0..<20).map { _ in
          [0xff, 0x50, 1, 0, .random(in: 0...255, using: &random)].randomElement(using: &random)
            ?? 0
        }
      }
    }
    let (payloads, end) = try scan(log)
    #expect(payloads.isEmpty || payloads == ["a": "1"])
    #expect(end <= log.count)
  }

  @Test func `a log evicts the oldest entries first, and entries from the future before them`() {
    var index = LogIndex()
    for (offset, second) in [5, 3, 4, 99].enumerated() {
      let place = LogIndex.Place(offset: offset, byteCount: 10, storedAt: .seconds(second * 100))
      index.put("\(second)", place)
    }
    let now = Duration.seconds(600)
    #expect(index.victims(freeing: 0, besides: [], now: now) == [])
    #expect(index.victims(freeing: 1, besides: [], now: now) == ["99"])
    #expect(index.victims(freeing: 21, besides: [], now: now) == ["99", "3", "4"])
    #expect(index.victims(freeing: 11, besides: ["3"], now: now) == ["99", "4"])
    #expect(index.victims(freeing: 99, besides: [], now: .seconds(9_900)) == ["3", "4", "5", "99"])
  }
}
