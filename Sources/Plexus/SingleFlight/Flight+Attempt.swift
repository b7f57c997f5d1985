public import Synchronization

extension Flight {
  /// The decisions about a flight that are made when it is launched.
  @usableFromInline
  struct Plan: Sendable {
    /// The value in memory that the fetch renews.
    @usableFromInline var previous: Outcome?
    /// Whether the stored copy is read before the fetch.
    @usableFromInline var readsFirst = false
    /// Whether the statistics already include the fetch.
    @usableFromInline var isCounted = false
    /// Whether a stored copy is accepted in place of a new value.
    @usableFromInline var takesStoredCopy = true
    /// Whether the policy's rule for remembering failures applies to the fetch.
    var remembersFailure = true
    /// Whether the tasks of the flight have the task-local values of the task that starts them.
    @usableFromInline var inheritsTaskLocals = false
  }

  /// The latest attempt to fetch the value.
  @usableFromInline
  struct Attempt: Sendable {
    /// Its start in the order of removals and refreshes, if there is a cacher.
    @usableFromInline var fetchStart = FetchStart()
    /// The start of the value of the stored copy in the same order: of the look for it, or of its own fetch.
    @usableFromInline var copyStart = FetchStart()
    /// The order of the last mark before the look for the stored copy, by whose tags it is judged.
    var readOrder: UInt64 = 0
    /// The number of the last refresh before it began.
    @usableFromInline var lastRefresh: UInt64 = 0
    /// The number of optimistic updates that had succeeded when it began.
    @usableFromInline var confirmationCount: UInt64 = 0
    /// The duration of the fetch, with all attempts so far.
    @usableFromInline var duration = Duration.zero

    /// Returns the attempt of a fetch of several keys, with what is known of the stored copy of one of them.
    @usableFromInline
    func replaced(by whole: Attempt) -> Attempt {
      var attempt = whole
      (attempt.copyStart, attempt.readOrder) = (copyStart, readOrder)
      return attempt
    }
  }
}

extension Flight {
  /// The time at which the latest attempt began, if there was one.
  @inlinable final var attemptTime: Nanoseconds? {
    let start = attemptStart.load(ordering: .relaxed)
    return start == .min ? nil : start
  }

  /// Records the beginning of an attempt.
  @inlinable
  final func noteAttempt(at start: Nanoseconds) {
    attemptStart.store(start, ordering: .relaxed)
  }
}
