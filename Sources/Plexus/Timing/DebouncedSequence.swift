/// An asynchronous sequence of the elements of a base sequence that are followed by a quiet period.
///
/// Create one with ``_Concurrency/AsyncSequence/debounced(for:leading:maximumDelay:clock:)`` on a `Sendable` sequence.
public struct DebouncedSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  /// The element type of the base sequence.
  public typealias Element = Base.Element

  /// The error type of the base sequence.
  public typealias Failure = Base.Failure

  let makeSource: @Sendable () -> TimedSource<Base, Debouncer.ScheduleState>

  /// Creates an iterator, which starts a new iteration of the base sequence at its first `next()`.
  public func makeAsyncIterator() -> Iterator {
    Iterator(timed: TimedSource.Iterator(makeSource()))
  }

  /// The iterator of a debounced sequence.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var timed: TimedSource<Base, Debouncer.ScheduleState>.Iterator

    /// Waits for the next element that is followed by a quiet period.
    ///
    /// - Returns: The element, or `nil` if the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after the pending element.
    public mutating func next() async throws(Base.Failure) -> Base.Element? {
      try await timed.next(isolation: #isolation)
    }

    /// Waits for the next element that is followed by a quiet period.
    ///
    /// - Parameter actor: The isolation of the caller.
    /// - Returns: The element, or `nil` if the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after the pending element.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(Base.Failure) -> Base.Element? {
      try await timed.next(isolation: actor)
    }
  }
}

@available(*, unavailable)
extension DebouncedSequence.Iterator: Sendable {}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns a sequence of the elements that are followed by a quiet period.
  ///
  /// An element is emitted once the delay has passed without a further element; a further element replaces it.
  ///
  /// ```swift
  /// let (keys, keyboard) = AsyncStream.makeStream(of: String.self)
  /// keyboard.yield("s")
  /// keyboard.yield("sw")
  /// keyboard.finish()
  /// for await text in keys.debounced(for: .milliseconds(300)) {
  ///   print(text)  // Prints "sw"
  /// }
  /// ```
  ///
  /// The timing is that of a ``Debouncer`` that each element touches. A separate task iterates this sequence from
  /// the first call of `next()` on, so the consumer exerts no back pressure. Emitted elements are buffered
  /// in order, without a limit, until they are read.
  ///
  /// When this sequence ends, the pending element is emitted immediately. When it throws, the pending element is
  /// emitted and the error is thrown after it. When the consuming task is cancelled, `next()` returns
  /// `nil` immediately and the iterating task is cancelled. Dropping the iterator cancels it, too.
  ///
  /// - Parameters:
  ///   - delay: The length of the quiet period. Zero or less emits every element.
  ///   - leading: Whether the first element after a quiet period is emitted immediately.
  ///   - maximumDelay: The maximum delay of an emission while elements keep arriving, or `nil` for no maximum.
  ///   - clock: The clock that measures the delays.
  /// - Returns: The debounced sequence.
  public func debounced(
    for delay: Duration,
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> DebouncedSequence<Self> {
    let schedule = Debouncer.ScheduleState(
      delay: delay,
      maximumDelay: maximumDelay,
      leading: leading
    )
    return DebouncedSequence { TimedSource(self, schedule, clock: clock) }
  }
}
