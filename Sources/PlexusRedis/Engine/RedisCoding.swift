internal import Foundation

/// The coders of values and events, which are used by many tasks at once and never changed.
enum RedisCoding {
  static let encoder = JSONEncoder()
  static let decoder = JSONDecoder()
}
