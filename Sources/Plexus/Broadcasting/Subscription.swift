public import Synchronization

/// The elements that one subscriber receives, from the moment of its registration on.
///
/// A subscription is registered when it is made: whatever is sent afterwards reaches it, even if
/// nobody iterates yet. It is the sequence that `subscribe()` wraps in an `AsyncStream`, with the
/// same rules, but it does not leave the caller's actor for an element that is already there, and
/// takes no lock to read one under the `.unbounded` policy.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscription()
/// messenger.send("hello")
/// messenger.finish()
/// for await greeting in greetings {
///   print(greeting)
/// }
/// ```
///
/// ## Copies
///
/// Copies of a subscription, and iterators made from them, share one position. A loop that is left
/// with `break` can be continued by another one. Two tasks must not iterate at once: each task takes
/// a subscription of its own.
///
/// - Precondition: One task iterates at a time. A second one that is noticed stops the program, also in
///   release builds: at the latest when one of them has to wait for an element. Until then each of them can
///   miss elements or receive them twice, but neither receives one that was not sent.
///
/// ## Fairness
///
/// A loop that finds one element after the other gives its actor to other tasks from time to time: when it has
/// read at least 16 elements in a row, or fewer if they last long, and the system's coarse clock has ticked since
/// it began. That clock ticks every 1 to 4 milliseconds on most systems.
///
/// ## Ending
///
/// A subscription ends when its source has finished or was released, after the elements that were
/// sent before; when the task that iterates is cancelled; and when the last copy and the last
/// iterator are dropped. It then counts no longer in
/// ``Broadcaster/subscriberCount`` and keeps nothing alive.
///
/// ## Cancellation
///
/// A loop whose task is cancelled never waits again, and ends however much is buffered: after at most
/// 15 further elements under `.unbounded`, at once under the other policies.
///
/// ## Memory
///
/// Under `.unbounded` everything that a subscriber has not read is kept for it, in chunks of 16
/// elements that all subscribers of the source share. A chunk is released when the slowest
/// subscriber has passed it. When every subscriber has read everything and waits, all elements are released.
public struct Subscription<Element: Sendable>: AsyncSequence, Sendable {
  /// A subscription does not throw.
  public typealias Failure = Never

  @usableFromInline let subscriber: Subscriber<Element>

  @inlinable
  init(subscriber: Subscriber<Element>) {
    self.subscriber = subscriber
  }

  /// The number of elements that the buffering policy has cost this subscriber so far.
  ///
  /// A replayed state that was overwritten before it was read counts, too. It is always 0 under
  /// `.unbounded`.
  public var droppedCount: Int {
    subscriber.hub.droppedCount(of: subscriber)
  }

  /// Creates an iterator that goes on where the last one stopped.
  @inlinable
  public func makeAsyncIterator() -> Iterator {
    Iterator(subscriber: subscriber)
  }

  /// The iterator of a subscription.
  public struct Iterator: AsyncIteratorProtocol {
    @usableFromInline let subscriber: Subscriber<Element>
    /// The elements at hand, if the log is read.
    @usableFromInline var run: LogRun<Element>?
    /// The sequence number of the first element at hand.
    @usableFromInline var start = 0
    /// The number of elements at hand, read or not.
    @usableFromInline var count = 0

    @inlinable
    init(subscriber: Subscriber<Element>) {
      self.subscriber = subscriber
    }

    /// Returns the next element, waiting for it if there is none.
    ///
    /// - Returns: The element, or `nil` when the subscription has ended.
    @inlinable
    public mutating func next() async -> Element? {
      await next(isolation: #isolation)
    }

    /// Returns the next element, waiting for it if there is none.
    ///
    /// - Parameter actor: Where the caller runs; an element that is already there is returned
    ///   without leaving it.
    /// - Returns: The element, or `nil` when the subscription has ended.
    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      let sequence = subscriber.position.load(ordering: .relaxed)
      // Only elements of the run can be read, whatever another iterator does with the position.
      if UInt(bitPattern: sequence &- start) < UInt(bitPattern: count), let run {
        subscriber.position.store(sequence &+ 1, ordering: .relaxed)
        return run[sequence]
      }
      // Most of the time there is another run, which is found without the cost of an asynchronous call.
      switch look() {
      case .element(let element): return element
      case .ended: return nil
      case .empty: return await wait(hasSpentBudget: false, isolation: actor)
      case .spent: return await wait(hasSpentBudget: true, isolation: actor)
      }
    }

    /// What there is to return.
    @usableFromInline
    enum Sight: Sendable {
      case element(Element)
      /// Nothing at the moment; the position is still claimed.
      case empty
      /// Other tasks come first; the position is still claimed.
      case spent
      case ended
    }

    /// Claims the position and looks for the next run of elements, of which the first is taken.
    @inlinable
    @inline(never)
    mutating func look() -> Sight {
      subscriber.claim()
      let sight = take()
      switch sight {
      case .empty, .spent: break
      case .element, .ended: subscriber.unclaim()
      }
      return sight
    }

    /// Looks for the next run of elements and takes the first of them, with the position claimed.
    @inlinable
    mutating func take() -> Sight {
      if !Task.isCancelled {
        if subscriber.hasSpentBudget() { return .spent }
        switch subscriber.step() {
        case .element(let element):
          subscriber.budget.spend(1, now: subscriber.core.coarseTime())
          return .element(element)
        case .run(let found, let end):
          let sequence = subscriber.position.load(ordering: .relaxed)
          let count = Swift.min(end &- sequence, Int(subscriber.budget.remaining))
          subscriber.budget.spend(count, now: subscriber.core.coarseTime())
          subscriber.position.store(sequence &+ 1, ordering: .relaxed)
          let element = found[sequence]
          run = found
          start = sequence
          self.count = count
          return .element(element)
        case .empty:
          // A reader that waits keeps nothing alive but the place where it goes on.
          forget()
          return .empty
        case .ended:
          break
        }
      }
      subscriber.end()
      forget()
      return .ended
    }

    @inlinable
    mutating func forget() {
      run = nil
      count = 0
    }

    /// Waits for the next element, or gives the actor to other tasks before it; the position is claimed.
    @inlinable
    mutating func wait(
      hasSpentBudget: Bool,
      isolation: isolated (any Actor)?
    ) async -> Element? {
      defer { subscriber.unclaim() }
      var hasSpentBudget = hasSpentBudget
      while true {
        if hasSpentBudget {
          await subscriber.giveWay(isolation: isolation)
        } else {
          await subscriber.park(isolation: isolation)
        }
        switch take() {
        case .element(let element): return element
        case .ended: return nil
        case .empty: hasSpentBudget = false
        case .spent: hasSpentBudget = true
        }
      }
    }
  }
}

@available(*, unavailable)
extension Subscription.Iterator: Sendable {}
