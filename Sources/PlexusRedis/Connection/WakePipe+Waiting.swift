internal import PlexusSupport

extension WakePipe {
  /// Waits to be woken, for at most 50 milliseconds, so that the caller can check why it waits.
  ///
  /// - Parameter remaining: The time that the caller has left; positive.
  func wait(atMost remaining: Nanoseconds) {
    var readiness = Readiness()
    readiness.watch(readEnd, for: .readable)
    readiness.wait(milliseconds: Int32(min(remaining / 1_000_000 + 1, 50)))
    rest()
  }
}
