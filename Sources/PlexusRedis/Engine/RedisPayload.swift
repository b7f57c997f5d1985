internal import Foundation
internal import Plexus

/// The payload of an entry: a JSON object with the value, and the terms under which it may be used.
///
/// Most entries have no terms. Their value is decoded without the object around it, which costs a third more.
struct RedisPayload<Value: Codable & Sendable>: Codable, Sendable {
  private enum Key: String, CodingKey {
    case value
  }

  let value: Value
  let terms: RedisPayloadTerms

  init(_ entry: CacheEntry<Value>) {
    value = entry.value
    terms = RedisPayloadTerms(entry)
  }

  init(from decoder: any Decoder) throws {
    value = try decoder.container(keyedBy: Key.self).decode(Value.self, forKey: .value)
    terms = try RedisPayloadTerms(from: decoder)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(value, forKey: .value)
    try terms.encode(to: encoder)
  }
}

/// The terms under which a value may be used.
///
/// Absent terms are not written.
struct RedisPayloadTerms: Hashable, Codable, Sendable {
  var validator: String?
  var timeToLive: Duration?
  var staleWhileRevalidate: Duration?
  var staleIfError: Duration?
  var requiresRevalidation: Bool?

  init() {}

  init<Value>(_ entry: CacheEntry<Value>) {
    validator = entry.validator
    timeToLive = entry.directives.timeToLive
    staleWhileRevalidate = entry.directives.staleWhileRevalidate
    staleIfError = entry.directives.staleIfError
    requiresRevalidation = entry.directives.requiresRevalidation ? true : nil
  }

  var directives: CacheDirectives {
    var directives = CacheDirectives(timeToLive: timeToLive)
    directives.staleWhileRevalidate = staleWhileRevalidate
    directives.staleIfError = staleIfError
    directives.requiresRevalidation = requiresRevalidation ?? false
    return directives
  }
}

// MARK: - Bytes

/// The beginning of an object whose first member is the value.
private let head = Array("{\"value\":".utf8)

extension RedisPayload {
  /// Reads a payload.
  ///
  /// - Returns: `nil` if it is damaged, or has a value of another type.
  init?(_ bytes: [UInt8]) {
    if let value = Self.onlyMember(of: bytes) {
      self.value = value
      terms = RedisPayloadTerms()
    } else if let payload = try? RedisCoding.decoder.decode(Self.self, from: Data(bytes)) {
      self = payload
    } else {
      return nil
    }
  }

  /// Returns the value of an object that has nothing else: what is between its ends is one value of JSON.
  private static func onlyMember(of bytes: [UInt8]) -> Value? {
    guard bytes.last == UInt8(ascii: "}"), bytes.starts(with: head),
      // The decoder would take a part with zeros for another encoding, and skip a mark of the encoding at its beginning.
      bytes[head.count] < 0x80, !bytes.contains(0)
    else { return nil }
    let content = Data(bytes[head.count..<(bytes.count - 1)])
    return try? RedisCoding.decoder.decode(Value.self, from: content)
  }

  /// Returns the bytes of a payload, in which the value comes first exactly if it has no terms.
  ///
  /// - Throws: An error of the encoder.
  func encoded() throws -> [UInt8] {
    guard let content = try? RedisCoding.encoder.encode(value) else {
      // A value that encodes nothing is valid only within an object.
      return [UInt8](try RedisCoding.encoder.encode(self))
    }
    var bytes = head
    if terms != RedisPayloadTerms() {
      bytes = [UInt8](try RedisCoding.encoder.encode(terms))
      bytes[bytes.count - 1] = UInt8(ascii: ",")
      bytes += head.dropFirst()
    }
    bytes += content
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }
}
