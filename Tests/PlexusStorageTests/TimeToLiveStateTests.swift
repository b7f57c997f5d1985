import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `The time to live of an entry` {
  private static let spans: [Duration?] = [
    nil, .zero, .seconds(60), .milliseconds(1), .seconds(-5), .seconds(Int64.max),
    .seconds(Int64.min), .seconds(7) + .nanoseconds(123_456_789),
  ]

  @Test(arguments: [false, true])
  func `the time to live of an entry is kept with it, through compaction and reopening`(
    isLog: Bool
  ) async throws {
    let disk = SimulatedDisk()
    let cacher = try disk.openCacher(isLog: isLog)
    var entries: [String: CacheEntry<Person>] = [:]
    for (number, span) in Self.spans.enumerated() {
      var entry = CacheEntry<Person>("\(number)", validator: number == 3 ? nil : "tag")
      entry.timeToLive = span
      entries["\(number)"] = entry
    }
    try await cacher.store(entries)
    try await cacher.store(String(repeating: "x", count: 9_000), for: "junk")
    try await cacher.removeEntries(forKeys: ["junk"])
    for cacher in [cacher, try disk.openCacher(isLog: isLog)] {
      for (key, entry) in entries { #expect(try await cacher.entry(forKey: key) == entry) }
    }
  }

  @Test func `files and logs of entries without a time to live are those of older versions`()
    throws
  {
    let entry = CacheEntry<Person>("ada")
    let file = try Envelope<Person>(schema: "s").encode(entry, key: "k")
    #expect(!String(decoding: file, as: UTF8.self).contains("timeToLive"))
    let json = Data(#"{"name":"ada"}"#.utf8)
    #expect(LogPayload.encode(json, directives: CacheDirectives()) == json)
    let decoded = try #require(LogPayload.decode(Array(json)))
    #expect(decoded.json == json)
    #expect(decoded.directives.timeToLive == nil)
  }

  @Test func `a log entry with a time to live is a miss for a reader that does not support it`()
    throws
  {
    for json in ["1", "\"a\"", "{}", "[1,2]", "null", "true", "1.5", "{\"name\":\"ada\"}"] {
      for span in Self.spans.compactMap({ $0 }) {
        let payload = LogPayload.encode(
          Data(json.utf8),
          directives: CacheDirectives(timeToLive: span)
        )
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Int.self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(String.self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode([Int].self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Double?.self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Person.self, from: payload) }
        let decoded = try #require(LogPayload.decode(Array(payload)))
        #expect(String(decoding: decoded.json, as: UTF8.self) == json)
        #expect(decoded.directives.timeToLive == span)
      }
    }
    #expect(LogPayload.decode([0xff]) == nil)
    #expect(LogPayload.decode([UInt8](repeating: 0xff, count: 16)) == nil)
  }

  @Test func `whichever byte of a file is changed, a time to live is never another one`() throws {
    var entry = CacheEntry<Person>("ada")
    entry.timeToLive = .seconds(60)
    let envelope = Envelope<Person>(schema: "s")
    let whole = try envelope.encode(entry, key: "k")
    #expect(envelope.decode(whole, key: "k") == entry)
    for index in whole.indices {
      var damaged = whole
      damaged[index] ^= 1
      #expect(envelope.decode(damaged, key: "k") == nil, "byte \(index)")
    }
    for length in whole.indices {
      #expect(envelope.decode(Array(whole.prefix(length)), key: "k") == nil)
    }
  }
}

@Suite(.fewAtOnce) struct `A map on a full disk` {
  @Test(arguments: [false, true])
  func `a map on a full disk answers requests, keeps old entries and names keys it cannot write`(
    isLog: Bool
  ) async throws {
    let disk = SimulatedDisk()
    func makeMap() throws -> MultiplexerMap<Int, Person> {
      MultiplexerMap(capacity: .count(20), cacher: try disk.openCacher(isLog: isLog)) {
        Person(name: "\($0)", age: $0)
      }
    }
    let map = try makeMap()
    for key in 0..<5 { _ = try await map.request(key) }
    try await map.flush()
    disk.setCapacity(disk.byteCount)
    for key in 0..<5 { map.store(Person(name: "new", age: key), for: key) }
    for key in 5..<10 { #expect(try await map.request(key).age == key) }
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys == Set((0..<10).map { "\($0)" }))
    #expect(map.statistics.cacherErrors == 10)
    let reader = try disk.openCacher(isLog: isLog)
    for key in 0..<5 { #expect(try await reader.name("\(key)") == "\(key)") }
    for key in 0..<10 { #expect(try await map.request(key).age == key) }
    disk.setCapacity(.max)
    try await map.flush()
    for key in 0..<5 { #expect(try await reader.name("\(key)") == "new") }
    for key in 5..<10 { #expect(try await reader.name("\(key)") == "\(key)") }
  }
}
