internal import Synchronization

/// Numbers that are given out once in the life of the process.
enum UniqueID {
  private static let last = Atomic<UInt64>(0)

  /// Returns a number, other than 0, that no earlier call returned.
  static func next() -> UInt64 {
    last.add(1, ordering: .relaxed).newValue
  }
}
