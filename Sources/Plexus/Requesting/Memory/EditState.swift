/// The updates of one value that are under way.
///
/// An update runs the caller's code without the lock, on a copy of the value. The version decides whether
/// its result still follows from the value in memory, or has to be computed again.
@usableFromInline
struct EditState: Hashable, Sendable {
  /// The number of times that the value was replaced or removed since the first of these updates began.
  private(set) var version: UInt64 = 0
  /// The number of updates that are computing a value.
  private var computations = 0

  /// Whether no update needs the version any more.
  var isEmpty: Bool { computations == 0 }

  init() {}

  /// Notes that an update takes a copy of the value.
  ///
  /// - Returns: The version of the copy.
  mutating func begin() -> UInt64 {
    computations += 1
    return version
  }

  /// Notes that an update has computed a value.
  ///
  /// - Parameter version: The version of the copy that it began with.
  /// - Returns: Whether the value in memory is still the one that it began with.
  mutating func end(_ version: UInt64) -> Bool {
    computations -= 1
    return version == self.version
  }

  /// Notes that the value was replaced or removed.
  mutating func change() {
    version += 1
  }
}
