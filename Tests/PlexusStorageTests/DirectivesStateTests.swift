import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `What came with an entry about keeping it` {
  /// Every combination of present and missing directives.
  private static let directives: [CacheDirectives] = (0..<16).map { number in
    CacheDirectives(
      timeToLive: number & 1 == 0 ? nil : .seconds(60),
      staleWhileRevalidate: number & 2 == 0 ? nil : .milliseconds(30_001),
      staleIfError: number & 4 == 0 ? nil : .seconds(Int64.max),
      requiresRevalidation: number & 8 != 0
    )
  }

  private func entry(_ directives: CacheDirectives) -> CacheEntry<Person> {
    CacheEntry(
      value: Person(name: "ada"),
      storedAt: .seconds(7),
      validator: "tag",
      directives: directives
    )
  }

  @Test(arguments: [false, true])
  func `the directives of an entry are kept with it, through reopening`(isLog: Bool) async throws {
    let disk = SimulatedDisk()
    let cacher = try disk.openCacher(isLog: isLog)
    for (number, directives) in Self.directives.enumerated() {
      try await cacher.store(["\(number)": entry(directives)])
    }
    for cacher in [cacher, try disk.openCacher(isLog: isLog)] {
      for (number, directives) in Self.directives.enumerated() {
        #expect(try await cacher.entry(forKey: "\(number)") == entry(directives))
      }
    }
  }

  @Test func `a log entry with directives is a miss for a reader that does not support them`()
    throws
  {
    for json in ["1", "\"a\"", "{}", "[1,2]", "null", "true", "{\"name\":\"ada\"}"] {
      for directives in Self.directives.dropFirst() {
        let payload = LogPayload.encode(Data(json.utf8), directives: directives)
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Int?.self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(String.self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode([Int].self, from: payload) }
        #expect(throws: (any Error).self) { try JSONDecoder().decode(Person.self, from: payload) }
        let decoded = try #require(LogPayload.decode(Array(payload)))
        #expect(String(decoding: decoded.json, as: UTF8.self) == json)
        #expect(decoded.directives == directives)
      }
    }
    #expect(LogPayload.decode([0xfe]) == nil)
    #expect(LogPayload.decode([16, 0xfe]) == nil, "Of a later version")
    #expect(LogPayload.decode([1, 2, 3, 7, 0xfe]) == nil)
  }

  @Test func `whichever byte of a file is changed, its directives are never other ones`() throws {
    let envelope = Envelope<Person>(schema: "s")
    for directives in [Self.directives[14], Self.directives[15]] {
      let whole = try envelope.encode(entry(directives), key: "k")
      #expect(envelope.decode(whole, key: "k") == entry(directives))
      for index in whole.indices {
        var damaged = whole
        damaged[index] ^= 1
        #expect(envelope.decode(damaged, key: "k") == nil, "byte \(index)")
      }
    }
  }

  @Test func `directives survive as JSON, for cachers that keep an entry whole`() throws {
    for directives in Self.directives {
      let json = try JSONEncoder().encode(directives)
      #expect(try JSONDecoder().decode(CacheDirectives.self, from: json) == directives)
    }
    let old = try JSONDecoder().decode(CacheDirectives.self, from: Data("{}".utf8))
    #expect(old == CacheDirectives())
  }
}
