internal import Synchronization

/// A generator of numbers that are unique in the process.
enum UniqueID {
  private static let last = Atomic<UInt64>(0)

  /// Returns a nonzero number that no earlier call has returned.
  static func next() -> UInt64 {
    last.add(1, ordering: .relaxed).newValue
  }
}
