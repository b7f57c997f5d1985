// `fatalError` because a precondition says nothing in release builds.

/// Stops the program: two tasks are reading one subscription, and would read elements that are not there.
@usableFromInline
@inline(never)
func stopBecauseOfTwoReaders() -> Never {
  fatalError(
    "Two tasks iterate over one subscription at once: give each task a subscription of its own"
  )
}
