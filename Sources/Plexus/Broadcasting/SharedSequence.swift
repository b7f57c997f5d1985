/// Another sequence, iterated once for any number of subscribers.
///
/// Make one with `broadcast(bufferingPolicy:)` of any sequence. It begins to iterate when the
/// first subscriber comes, stops when the last one has gone, and tells everybody the same elements in the
/// same order. By default nothing is replayed: a later subscriber gets what arrives from then on.
///
/// ```swift
/// let (lines, modem) = AsyncStream.makeStream(of: String.self)
/// let shared = lines.broadcast()
/// let first = shared.subscribe()
/// let second = shared.subscribe()
/// modem.yield("ring")
/// for await line in first {
///   print(line)
///   break
/// }
/// ```
///
/// ## Failure
///
/// The elements of a sequence that may fail are results. The last of them is the failure: every
/// subscriber gets it, also one that comes afterwards, and then its stream ends.
///
/// ## Starting again
///
/// A subscriber that comes when the others have gone starts another iteration. What that yields depends
/// on the sequence: an `AsyncStream` has ended with the first one. What a stopped iteration still yields
/// reaches nobody. The sequence is never iterated twice at once: the other iteration begins when the
/// stopped one is over, which a sequence that does not care to be cancelled can put off until its next
/// element.
///
/// ## Replay
///
/// With `replaying`, a new subscriber gets the newest elements first, as many as given. When the iteration stops
/// they are forgotten.
///
/// ## Lingering
///
/// With `lingering`, the iteration goes on for a while without subscribers: one that comes in time finds it
/// running, with its replay. A screen that is left and entered again does not connect anew.
///
/// ## Ending
///
/// When the sequence has ended by itself, all streams end after what came before. A later subscriber gets the
/// replay, and then the end.
///
/// ## Release
///
/// The last reference to the broadcaster stops the iteration and ends its streams; they do not keep it.
public final actor SharedSequence<Element: Sendable>: Broadcaster {
  let core: SharedSequenceCore<Element>
  private let bufferingPolicy: BufferingPolicy<Element>

  init(
    bufferingPolicy: BufferingPolicy<Element>,
    replaying replayLimit: Int,
    lingering: Duration,
    clock: any Clock<Duration>,
    _ source: @escaping SharedSequenceCore<Element>.Source
  ) {
    core = SharedSequenceCore(
      replaying: replayLimit,
      lingering: lingering,
      clock: clock,
      source
    )
    self.bufferingPolicy = bufferingPolicy
  }

  deinit {
    core.close()
  }

  /// The number of subscribers at this moment, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber with the buffering policy given at the beginning.
  ///
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    AsyncStream(subscription())
  }

  /// Registers a subscriber with the buffering policy given at the beginning.
  ///
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription() -> Subscription<Element> {
    subscription(bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber and returns the elements that arrive from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Element>
  ) -> Subscription<Element> {
    registered(bufferingPolicy: bufferingPolicy)
  }
}

extension SharedSequence: HubBacked {
  nonisolated var replayLimit: Int { core.replayLimit }

  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    core.withHub(body)
  }
}

extension AsyncSequence where Self: Sendable, Element: Sendable, Failure == Never {
  /// Returns a broadcaster that iterates this sequence once for all its subscribers.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: What is kept for a subscriber while it is behind, unless it asks for another policy.
  ///   - replaying: How many of the newest elements a new subscriber gets first.
  ///   - lingering: How long the iteration goes on after the last subscriber has left.
  ///   - clock: The clock that measures `lingering`.
  /// - Returns: The broadcaster. It has not begun to iterate.
  /// - Precondition: `replaying` is not negative.
  public func broadcast(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    replaying: Int = 0,
    lingering: Duration = .zero,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> SharedSequence<Element> {
    SharedSequence(
      bufferingPolicy: bufferingPolicy,
      replaying: replaying,
      lingering: lingering,
      clock: clock
    ) { receive in
      for await element in self {
        guard receive(element) else { break }
      }
      return nil
    }
  }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns a broadcaster that iterates this sequence, which may fail, once for all its subscribers.
  ///
  /// ```swift
  /// let numbers = AsyncThrowingStream<Int, any Error> { continuation in
  ///   continuation.yield(1)
  ///   continuation.finish(throwing: CancellationError())
  /// }
  /// let shared = numbers.broadcast()
  /// for await result in shared.subscribe() {
  ///   print(try result.get())
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - bufferingPolicy: What is kept for a subscriber while it is behind, unless it asks for another policy.
  ///     A failure takes room like an element.
  ///   - replaying: How many of the newest elements a new subscriber gets first.
  ///   - lingering: How long the iteration goes on after the last subscriber has left.
  ///   - clock: The clock that measures `lingering`.
  /// - Returns: The broadcaster. It has not begun to iterate.
  /// - Precondition: `replaying` is not negative.
  public func broadcast(
    bufferingPolicy: BufferingPolicy<Result<Element, Failure>> = .unbounded,
    replaying: Int = 0,
    lingering: Duration = .zero,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> SharedSequence<Result<Element, Failure>> {
    SharedSequence(
      bufferingPolicy: bufferingPolicy,
      replaying: replaying,
      lingering: lingering,
      clock: clock
    ) { receive in
      do throws(Failure) {
        for try await element in self {
          guard receive(.success(element)) else { break }
        }
        return nil
      } catch {
        return .failure(error)
      }
    }
  }
}
