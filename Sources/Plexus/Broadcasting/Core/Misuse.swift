// `fatalError` because a precondition prints no message in release builds.

/// Stops the program because two tasks read one subscription, which would access uninitialized memory.
@usableFromInline
@inline(never)
func stopBecauseOfTwoReaders() -> Never {
  fatalError(
    "Two tasks iterate over one subscription at once: give each task a subscription of its own"
  )
}
