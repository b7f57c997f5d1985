/// The elements of another sequence after which it was quiet for a while.
///
/// Make one with `debounced(for:leading:maximumDelay:clock:)` on any sequence that is `Sendable`.
public struct DebouncedSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  /// What the base sequence yields.
  public typealias Element = Base.Element

  /// What the base sequence throws.
  public typealias Failure = Base.Failure

  let timed: TimedBase<Base, DebounceState>

  /// Creates an iterator, which iterates the base sequence anew from its first `next()` on.
  public func makeAsyncIterator() -> Iterator {
    Iterator(timed: timed.makeIterator())
  }

  /// The iterator of a debounced sequence.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var timed: TimedIterator<Base, DebounceState>

    /// Waits for the next element that is followed by a quiet time.
    ///
    /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after what was pending.
    public mutating func next() async throws(Base.Failure) -> Base.Element? {
      try await timed.next(isolation: #isolation)
    }

    /// Waits for the next element that is followed by a quiet time.
    ///
    /// - Parameter actor: Where the caller runs.
    /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after what was pending.
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
  /// Returns the elements of this sequence after which it was quiet for a while.
  ///
  /// An element is passed on when the delay has passed without another one, which takes its place.
  ///
  /// ```swift
  /// let (keys, keyboard) = AsyncStream.makeStream(of: String.self)
  /// keyboard.yield("s")
  /// keyboard.yield("sw")
  /// keyboard.finish()
  /// for await text in keys.debounced(for: .milliseconds(300)) {
  ///   print(text)  // sw
  /// }
  /// ```
  ///
  /// The rules are those of a ``Debouncer`` that is touched by every element. This sequence is
  /// iterated by a task of its own from the first call of `next()` on, so that it is never held up.
  /// What has been passed on and not been read yet is kept, in order.
  ///
  /// When this sequence ends, what is pending is passed on at once. When it throws, so is that, and
  /// then the error is thrown. When the task that iterates the result is cancelled, `next()` returns
  /// `nil` at once, whatever this sequence does, and the task that iterates it is cancelled; likewise
  /// when the iterator is dropped.
  ///
  /// - Parameters:
  ///   - delay: How long it has to be quiet; zero or less passes on every element.
  ///   - leading: Whether the first element after a quiet time is passed on at once.
  ///   - maximumDelay: How long it takes at most until something is passed on, however many elements
  ///     follow; `nil` is for ever.
  ///   - clock: What measures the time.
  /// - Returns: The sequence of what is left.
  public func debounced(
    for delay: Duration,
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> DebouncedSequence<Self> {
    let schedule = DebounceState(delay: delay, maximumDelay: maximumDelay, leading: leading)
    return DebouncedSequence(timed: TimedBase(base: self, schedule: schedule, clock: clock))
  }
}
