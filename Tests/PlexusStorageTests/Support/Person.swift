import Plexus

/// A value to be stored.
struct Person: Codable, Hashable, Sendable {
  var name: String
  var age: Int?
}

extension CacheEntry where Value == Person {
  init(_ name: String, at seconds: Int = 1_700_000_000, validator: String? = nil) {
    self.init(
      value: Person(name: name, age: 36),
      storedAt: .seconds(seconds) + .nanoseconds(123_456_789),
      validator: validator
    )
  }
}

extension Cacher {
  /// The value of a key, if any.
  func value(_ key: String) async throws -> Value? { try await entry(forKey: key)?.value }
}

extension Cacher where Value == Person {
  func store(_ name: String, for key: String, at seconds: Int = 1_700_000_000) async throws {
    try await store([key: CacheEntry(name, at: seconds)])
  }

  func name(_ key: String) async throws -> String? { try await value(key)?.name }
}

/// Keys that a careless cacher would confuse, reject or write elsewhere.
let hostileKeys: [String] = [
  "", ".", "..", "../x", "../../etc/passwd", "/", "/x", "x/", "x/y", "a", "A", "aa", "aA", "AA",
  "a.json", "~", "~a", "*", "a b", " a", "a ", "a\nb", "\0", "a\0", "a\0b", "😀", "👩‍👩‍👧", "é", "ß",
  "SS",
  "İ", "con", "NUL", "a:b", "a\\b", "%2e%2e", "-rf", ".tmp", "x.tmp", "\u{feff}", "\u{202e}a",
  String(repeating: "k", count: 80), String(repeating: "k", count: 81),
  String(repeating: "K", count: 80), String(repeating: "x", count: 10_000),
  String(repeating: "x", count: 9_999) + "y", String(repeating: "😀", count: 2_500),
]
