import Foundation
import Plexus
import PlexusTesting
import TestSupport

/// A cacher in memory.
final class SimpleCacher: Cacher {
  private let entries: Guarded<[String: CacheEntry<Int>]>
  private let reading: Gate?
  private let failure: (any Error)?
  private let writes = Gate()

  /// - Parameters:
  ///   - values: The stored values, with the current time.
  ///   - reading: A gate that holds readers.
  ///   - failure: The error of writing and removing.
  init(_ values: [Int: Int] = [:], reading: Gate? = nil, failure: (any Error)? = nil) {
    let stored = values.map { ("\($0)", CacheEntry(value: $1, storedAt: Self.now)) }
    entries = Guarded(Dictionary(uniqueKeysWithValues: stored))
    self.reading = reading
    self.failure = failure
  }

  private static var now: Duration { .seconds(Date().timeIntervalSince1970) }

  /// Waits for a number of stores.
  func stores(_ count: Int) async { await writes.arrivals(count) }

  /// The stored values.
  var values: [String: Int] { entries.withLock { $0.mapValues(\.value) } }

  func entry(forKey key: String) async throws -> CacheEntry<Int>? {
    try await reading?.wait()
    return entries.withLock { $0[key] }
  }

  func store(_ new: [String: CacheEntry<Int>]) async throws {
    if let failure { throw failure }
    entries.withLock { $0.merge(new) { $1 } }
    writes.open()
    try await writes.wait()
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    if let failure { throw failure }
    entries.withLock { entries in for key in keys { entries[key] = nil } }
  }

  func removeAllEntries() async throws {
    if let failure { throw failure }
    entries.withLock { $0 = [:] }
  }
}
