// `fatalError` where release builds stop, too, because a precondition prints no message there.

/// Stops the program because two tasks read one subscription, which would access uninitialized memory.
@usableFromInline
@inline(never)
func stopBecauseOfTwoReaders() -> Never {
  fatalError(
    "Two tasks iterate over one subscription at once: give each task a subscription of its own"
  )
}

/// Stops the program in debug builds because a clock stands still: loops that wait for a time would not end.
package func stopBecauseOfStandstill() {
  assertionFailure(
    """
    The `sleep` of a clock returned before its deadline \(EarlyWakes.limit) times, and its `now` has not changed: \
    it must suspend until the deadline, or throw
    """
  )
}
