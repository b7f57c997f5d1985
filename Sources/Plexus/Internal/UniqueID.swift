internal import Synchronization

/// Numbers that are given out once in the life of the process.
enum UniqueID {
  private static let last = Atomic<UInt64>(0)

  /// Returns a number that no earlier call returned. It is never 0.
  static func next() -> UInt64 {
    last.add(1, ordering: .relaxed).newValue
  }
}
