import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The payload of an entry` {
  /// A value that encodes nothing.
  private struct Nothing: Codable, Hashable {
    init() {}
    init(from decoder: any Decoder) {}
    func encode(to encoder: any Encoder) {}
  }

  private func entry<Value: Sendable>(_ value: Value) -> CacheEntry<Value> {
    CacheEntry(value: value, storedAt: .zero)
  }

  /// An entry with terms.
  private func bounded<Value: Sendable>(_ value: Value) -> CacheEntry<Value> {
    var directives = CacheDirectives(timeToLive: .milliseconds(1_500))
    directives.staleIfError = .seconds(9)
    directives.requiresRevalidation = true
    return CacheEntry(value: value, storedAt: .zero, validator: "v\"1", directives: directives)
  }

  private func text<Value>(_ entry: CacheEntry<Value>) throws -> String
  where Value: Codable & Sendable {
    String(decoding: try RedisPayload(entry).encoded(), as: UTF8.self)
  }

  private func value<Value: Codable & Sendable>(_ text: String, _: Value.Type) -> Value? {
    RedisPayload<Value>(Array(text.utf8))?.value
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the payload of an entry has a value, and the terms of the entry`() throws {
    #expect(try text(entry("a\"b")) == #"{"value":"a\"b"}"#)
    for entry in [entry(["a": 1]), bounded(["a": 1])] {
      let payload = try #require(RedisPayload<[String: Int]>(try RedisPayload(entry).encoded()))
      #expect(payload.value == ["a": 1])
      #expect(payload.terms == RedisPayloadTerms(entry))
      #expect(payload.terms.directives == entry.directives)
    }
    #expect(try text(bounded(1)).hasSuffix(#","value":1}"#))
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the payload of an entry is the object that any decoder of JSON reads`() throws {
    for entry in [entry([1, 2]), bounded([1, 2])] {
      let bytes = try RedisPayload(entry).encoded()
      let payload = try JSONDecoder().decode(RedisPayload<[Int]>.self, from: Data(bytes))
      #expect(payload.value == [1, 2])
      #expect(payload.terms == RedisPayloadTerms(entry))
      // In whichever order its members come.
      let other = [UInt8](try JSONEncoder().encode(payload))
      #expect(RedisPayload<[Int]>(other)?.terms == RedisPayloadTerms(entry))
    }
    let first = RedisPayload<Int>(Array(#"{"value":1,"validator":"v"}"#.utf8))
    #expect(first?.value == 1)
    #expect(first?.terms.validator == "v")
    #expect(value(#" { "value" : 1 } "#, Int.self) == 1)
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights))
  func `the payload of an entry can be that of a value without content`()
    throws
  {
    #expect(try text(entry(Int?.none)) == #"{"value":null}"#)
    #expect(value(#"{"value":null}"#, Int?.self) == .some(nil))
    for entry in [entry(Nothing()), bounded(Nothing())] {
      #expect(RedisPayload<Nothing>(try RedisPayload(entry).encoded())?.value == Nothing())
    }
  }

  @Test(
    .guarantee(.cacheUsersNeedDocumentedRights),
    arguments: [
      "", "{", "{}", "garbage", #"{"value":}"#, #"{"value":"1"}"#, #"{"value":1"#, #"{"value":1}}"#,
      #"{"value":1 2}"#, "{\"value\":1\0}", "{\"value\":\01}", #"{"value":1,"validator":2}"#,
      "{\"value\":\u{FEFF}1}", #"{"value":1},{"value":1}"#, #"{"value":1}}}"#, #"{"value":null}"#,
    ]
  )
  func `the payload of an entry is none if it is damaged or of another type`(text: String) {
    #expect(value(text, Int.self) == nil)
  }

  /// Texts of objects that any decoder of JSON reads, and of some that none does.
  private static let texts = [
    #"{"value":1,"value":2}"#, #"{"value":{"value":1},"value":{"value":2}}"#,
    #"{"value":"}","validator":"{\"value\":1}"}"#, #"{"value":"\"}"}"#, #"{"value":"\\"}"#,
    #"{"value":"\u007d"}"#, #"{"v\u0061lue":1}"#, #"{"value":1,"v\u0061lue":2}"#,
    #"{"value":{"value":1}}"#, #"{"value":[{"value":1}]}"#, #"{"value":1e400}"#,
    #"{"value":123456789012345678901234567890}"#, #"{"value":-0}"#, #"{"value":01}"#,
    #"{"value":null}"#, #"{"value":null,"value":1}"#, #"{"value":true}"#, #"{"value": 1 }"#,
    #"{"value":"2001-01-01T00:00:00Z"}"#, #"{"value":"QUJD"}"#, #"{"value":1.5}"#,
    #"{"value":1},{}"#, #"{"value":1}{}"#, #"{"value":}"#, #"{"value":{}"#, #"{"value":{}}}"#,
    "{\"value\":\u{FEFF}1}", "{\"value\":1\u{FEFF}}", "{\"value\":\"\u{FEFF}\"}",
    "{\"value\":// 1\n1}", "{\"value\":1,}", "{\"value\":'1'}", "{\"value\":NaN}",
  ]

  private struct Part: Codable, Hashable {
    var value: Int?
  }

  @Test(.guarantee(.cacheUsersNeedDocumentedRights), arguments: texts)
  func `the payload of an entry has the value that the whole object has for any decoder`(
    text: String
  ) {
    check(text, Int.self)
    check(text, Int?.self)
    check(text, Double.self)
    check(text, Decimal.self)
    check(text, String.self)
    check(text, String?.self)
    check(text, Date.self)
    check(text, Data.self)
    check(text, Bool.self)
    check(text, Part.self)
    check(text, [Part].self)
    check(text, [String: Int].self)
    check(text, [String: Int?].self)
    check(text, Nothing.self)
  }

  private func check<Value: Codable & Sendable & Equatable>(_ text: String, _: Value.Type) {
    let whole = try? RedisCoding.decoder.decode(RedisPayload<Value>.self, from: Data(text.utf8))
    let payload = RedisPayload<Value>(Array(text.utf8))
    #expect(payload?.value == whole?.value, "\(Value.self)")
    #expect(payload?.terms == whole?.terms, "\(Value.self)")
  }
}
