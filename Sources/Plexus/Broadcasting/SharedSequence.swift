/// A sequence that is iterated once for any number of subscribers.
///
/// Create one with the `broadcast` method of a sequence. The iteration starts with the first subscriber and stops when
/// the last one leaves. All subscribers receive the same elements in the same order. By default, nothing is replayed: a
/// subscriber receives the elements that arrive after it was registered.
///
/// ```swift
/// let (lines, modem) = AsyncStream.makeStream(of: String.self)
/// let shared = lines.broadcast()
/// let first = shared.subscribe()
/// let second = shared.subscribe()
/// modem.yield("ring")
/// for await line in first {
///   print(line)  // Prints "ring"
///   break
/// }
/// ```
///
/// ## Failure
///
/// A sequence that can fail has results as elements. The last one is the failure: every subscriber receives it, even
/// one that subscribes afterwards, and then its stream ends. The failure is part of the end: no buffering policy drops
/// it, and it displaces no element, neither buffered nor replayed.
///
/// ## Starting again
///
/// A subscriber that is added after the last one has left starts another iteration. Its elements depend on the
/// sequence; an `AsyncStream`, for example, ended with the first iteration. Elements of a stopped iteration are
/// dropped. Iterations never overlap: the next one starts when the stopped one has ended. A sequence that does not
/// respond to cancellation ends at its next element.
///
/// ## Replay
///
/// With `replaying`, a new subscriber first receives up to that number of the newest elements. Stopping the iteration
/// clears them.
///
/// ## Lingering
///
/// With `lingering`, the iteration continues for that time after the last subscriber has left. A subscriber that is
/// added meanwhile joins it, with its replay: for example, leaving a screen and returning to it does not reconnect.
///
/// ## Ending
///
/// When the sequence ends, all streams end after the elements before. A later subscriber receives the replay, and then
/// its stream ends.
///
/// ## Release
///
/// Releasing the last reference to the broadcaster stops the iteration and ends the streams. Streams do not keep the
/// broadcaster alive.
///
/// ## Topics
///
/// ### Subscribing
/// - ``subscribe()``
/// - ``subscription()``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Counting subscribers
/// - ``subscriberCount``
/// - ``subscriberCounts(bufferingPolicy:)``
/// - ``waitForSubscriber()``
public final actor SharedSequence<Element: Sendable>: Broadcaster {
  let core: SharedSequenceCore<Element>
  private let bufferingPolicy: BufferingPolicy<Element>

  init(bufferingPolicy: BufferingPolicy<Element>, core: SharedSequenceCore<Element>) {
    self.bufferingPolicy = bufferingPolicy
    self.core = core
  }

  deinit {
    core.close()
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    core.hub.subscriberCount
  }

  /// Registers a subscriber with the buffering policy of the broadcaster.
  ///
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe() -> AsyncStream<Element> {
    AsyncStream(subscription())
  }

  /// Registers a subscriber with the buffering policy of the broadcaster.
  ///
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription() -> Subscription<Element> {
    subscription(bufferingPolicy: bufferingPolicy)
  }

  /// Registers a subscriber, which receives the elements that arrive from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Element>
  ) -> Subscription<Element> {
    registered(bufferingPolicy: bufferingPolicy)
  }
}

extension SharedSequence: HubBacked {
  nonisolated var replayLimit: Int { core.replayLimit }

  nonisolated var presentHub: BroadcastHub<Element>? { core.hub }

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
  ///   - bufferingPolicy: The default policy for elements that a subscriber has not read yet.
  ///   - replaying: The number of newest elements that a new subscriber receives first.
  ///   - lingering: How long the iteration continues after the last subscriber has left.
  ///   - clock: The clock that measures `lingering`.
  /// - Returns: The broadcaster, which has not started to iterate.
  /// - Precondition: `replaying` is not negative.
  public func broadcast(
    bufferingPolicy: BufferingPolicy<Element> = .unbounded,
    replaying: Int = 0,
    lingering: Duration = .zero,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> SharedSequence<Element> {
    let core = SharedSequenceCore<Element>(
      replaying: replaying,
      lingering: lingering,
      clock: clock
    ) { receive in
      for await element in self {
        guard receive(element) else { break }
      }
      return nil
    }
    return SharedSequence(bufferingPolicy: bufferingPolicy, core: core)
  }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns a broadcaster that iterates this throwing sequence once for all its subscribers.
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
  ///   - bufferingPolicy: The default policy for elements that a subscriber has not read yet. The failure is delivered
  ///     regardless of the policy, after the elements.
  ///   - replaying: The number of newest elements that a new subscriber receives first. The failure does not count.
  ///   - lingering: How long the iteration continues after the last subscriber has left.
  ///   - clock: The clock that measures `lingering`.
  /// - Returns: The broadcaster, which has not started to iterate.
  /// - Precondition: `replaying` is not negative.
  public func broadcast(
    bufferingPolicy: BufferingPolicy<Result<Element, Failure>> = .unbounded,
    replaying: Int = 0,
    lingering: Duration = .zero,
    clock: any Clock<Duration> = ContinuousClock()
  ) -> SharedSequence<Result<Element, Failure>> {
    let core = SharedSequenceCore<Result<Element, Failure>>(
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
    return SharedSequence(bufferingPolicy: bufferingPolicy, core: core)
  }
}
