/// An asynchronous sequence of the elements of a base sequence, at most one per interval.
///
/// Create one with ``_Concurrency/AsyncSequence/throttled(for:leading:trailing:clock:)`` on a `Sendable` sequence.
public struct ThrottledSequence<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Base.Element: Sendable {
  /// The element type of the base sequence.
  public typealias Element = Base.Element

  /// The error type of the base sequence.
  public typealias Failure = Base.Failure

  let makeSource: @Sendable () -> TimedSource<Base, Throttler.ScheduleState>

  /// Creates an iterator, which starts a new iteration of the base sequence at its first `next()`.
  public func makeAsyncIterator() -> Iterator {
    Iterator(timed: TimedSource.Iterator(makeSource()))
  }

  /// The iterator of a throttled sequence.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate var timed: TimedSource<Base, Throttler.ScheduleState>.Iterator

    /// Waits for the next emitted element.
    ///
    /// - Returns: The element, or `nil` if the base sequence has ended or the task is cancelled.
    /// - Throws: The error of the base sequence, after the pending element.
    public mutating func next() async throws(Base.Failure) -> Base.Element? {
      try await timed.next(isolation: #isolation)
    }

    /// Waits for the next emitted element.
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
extension ThrottledSequence.Iterator: Sendable {}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns a sequence of the elements of this sequence, at most one per interval.
  ///
  /// The first element is emitted immediately. Of the elements that arrive during the interval, the last one is
  /// emitted at its end.
  ///
  /// ```swift
  /// let (positions, sensor) = AsyncStream.makeStream(of: Int.self)
  /// for position in 1...100 { sensor.yield(position) }
  /// sensor.finish()
  /// for await position in positions.throttled(for: .seconds(1)) {
  ///   print(position)
  /// }
  /// // Prints "1"
  /// // Prints "100"
  /// ```
  ///
  /// The timing is that of a ``Throttler`` that each element touches. A separate task iterates this sequence from
  /// the first call of `next()` on, so the consumer exerts no back pressure. Emitted elements are buffered
  /// in order, without a limit, until they are read.
  ///
  /// When this sequence ends, the pending element is emitted immediately. When it throws, the pending element is
  /// emitted and the error is thrown after it. When the consuming task is cancelled, `next()` returns
  /// `nil` immediately and the iterating task is cancelled. Dropping the iterator cancels it, too.
  ///
  /// - Parameters:
  ///   - interval: The minimum time between two elements. Zero or less emits every element.
  ///   - leading: Whether an element outside an interval is emitted immediately.
  ///   - trailing: Whether the last element that arrives during an interval is emitted at its end.
  ///   - clock: The clock that measures the intervals.
  /// - Returns: The throttled sequence.
  public func throttled(
    for interval: Duration,
    leading: Bool = true,
    trailing: Bool = true,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> ThrottledSequence<Self> {
    let schedule = Throttler.ScheduleState(interval: interval, leading: leading, trailing: trailing)
    return ThrottledSequence { TimedSource(self, schedule, clock: clock) }
  }
}
