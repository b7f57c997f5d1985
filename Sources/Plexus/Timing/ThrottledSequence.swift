/// The elements of another sequence, at most one an interval.
///
/// Make one with `throttled(for:leading:trailing:clock:)` on any sequence that is `Sendable`.
public struct ThrottledSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  /// What the base sequence yields.
  public typealias Element = Base.Element

  /// What the base sequence throws.
  public typealias Failure = Base.Failure

  let timed: TimedBase<Base, ThrottleState>

  /// Creates an iterator, which iterates the base sequence anew from its first `next()` on.
  public func makeAsyncIterator() -> Iterator {
    Iterator(timed: timed.makeIterator())
  }

  /// The iterator of a throttled sequence.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var timed: TimedIterator<Base, ThrottleState>

    /// Waits for the next element that may pass.
    ///
    /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after what was pending.
    public mutating func next() async throws(Base.Failure) -> Base.Element? {
      try await timed.next(isolation: #isolation)
    }

    /// Waits for the next element that may pass.
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
extension ThrottledSequence.Iterator: Sendable {}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns the elements of this sequence, at most one an interval.
  ///
  /// The first element is passed on at once; of those that come before the interval has passed, the
  /// last one is passed on at its end.
  ///
  /// ```swift
  /// let (positions, sensor) = AsyncStream.makeStream(of: Int.self)
  /// for position in 1...100 { sensor.yield(position) }
  /// sensor.finish()
  /// for await position in positions.throttled(for: .seconds(1)) {
  ///   print(position)  // 1 and, at the end, 100
  /// }
  /// ```
  ///
  /// The rules are those of a ``Throttler`` that is touched by every element. This sequence is
  /// iterated by a task of its own from the first call of `next()` on, so that it is never held up.
  /// What has been passed on and not been read yet is kept, in order.
  ///
  /// When this sequence ends, what is pending is passed on at once. When it throws, so is that, and
  /// then the error is thrown. When the task that iterates the result is cancelled, `next()` returns
  /// `nil` at once, whatever this sequence does, and the task that iterates it is cancelled; likewise
  /// when the iterator is dropped.
  ///
  /// - Parameters:
  ///   - interval: How long it is from one element to the next, at least; zero or less passes on
  ///     every element.
  ///   - leading: Whether an element that comes late enough is passed on at once.
  ///   - trailing: Whether the last of those that come too early is passed on at the end of the
  ///     interval.
  ///   - clock: What measures the time.
  /// - Returns: The sequence of what is left.
  public func throttled(
    for interval: Duration,
    leading: Bool = true,
    trailing: Bool = true,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> ThrottledSequence<Self> {
    let schedule = ThrottleState(interval: interval, leading: leading, trailing: trailing)
    return ThrottledSequence(timed: TimedBase(base: self, schedule: schedule, clock: clock))
  }
}
