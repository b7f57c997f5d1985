import TestSupport

extension Guarded where Value == Int {
  /// Adds one, and returns the sum.
  @discardableResult
  func countUp() -> Int {
    withLock { count in
      count += 1
      return count
    }
  }

  /// Subtracts one.
  func countDown() {
    withLock { $0 -= 1 }
  }
}
