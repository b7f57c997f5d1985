internal import Synchronization

/// A generator of numbers that are unique in the process.
@usableFromInline
enum UniqueID: Sendable {
  private static let last = Atomic<UInt64>(0)

  /// Returns a nonzero number that no earlier call has returned.
  @usableFromInline
  static func next() -> UInt64 {
    last.add(1, ordering: .relaxed).newValue
  }
}
