public import Synchronization

/// An asynchronous sequence of the elements that one subscriber receives from its registration on.
///
/// A subscription is registered when it is created: it receives the elements that are sent afterwards, even if the
/// iteration starts later.
///
/// `subscribe()` returns the same elements as an `AsyncStream`. Use the stream for code that expects the standard type.
/// Use a subscription for a fast loop of your own, or to count dropped elements: it returns a buffered element without
/// leaving the caller's actor and, under the `.unbounded` policy and unless it ignores a sender, without taking a lock.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscription()
/// messenger.send("hello")
/// messenger.finish()
/// for await greeting in greetings {
///   print(greeting)  // Prints "hello"
/// }
/// ```
///
/// ## Copies
///
/// Copies of a subscription, and their iterators, share one position. After a `break`, another loop can continue where
/// the first one stopped. Two tasks must not iterate at once: each task needs its own subscription.
///
/// - Precondition: Only one task iterates at a time. Otherwise the program stops, even in release builds, at the latest
///   when one of the tasks has to wait for an element. Until then, each of them can miss elements or receive them
///   twice, but receives only elements that were sent.
///
/// ## Fairness
///
/// A loop that never has to wait yields its actor to other tasks when the system's coarse clock has ticked since the
/// loop started or last yielded. The clock is read once for every 16 to 64 elements, and more often if processing them
/// takes long. On most systems, it ticks every 1 to 4 milliseconds.
///
/// ## Ending
///
/// When its source finishes or is released, a subscription ends after the elements that were sent before. It also ends
/// when the task that iterates is cancelled, and when its last copy and its last iterator are dropped. It then no
/// longer counts in ``Broadcaster/subscriberCount``, and keeps nothing alive.
///
/// ## Cancellation
///
/// A loop whose task is cancelled does not wait again, and drops the buffered elements. It ends immediately, or under
/// `.unbounded` after at most 15 further elements.
///
/// ## Memory
///
/// Under `.unbounded`, all elements that a subscriber has not read are retained, in chunks of 16 elements that all
/// subscribers of the source share. A chunk is released when the slowest subscriber has passed it. When all subscribers
/// have read everything and are waiting, no element is retained.
///
/// ## Topics
///
/// ### Iterating
/// - ``makeAsyncIterator()``
/// - ``Iterator``
///
/// ### Counting dropped elements
/// - ``droppedCount``
public struct Subscription<Element: Sendable>: AsyncSequence, Sendable {
  /// A subscription does not throw.
  public typealias Failure = Never

  @usableFromInline let subscriber: Subscriber<Element>

  @inlinable
  init(subscriber: Subscriber<Element>) {
    self.subscriber = subscriber
  }

  /// The number of elements that the buffering policy has dropped so far.
  ///
  /// A replayed state that was replaced before it was read is counted, too. Under `.unbounded`, the number is always 0.
  public var droppedCount: Int {
    subscriber.hub.droppedCount(of: subscriber)
  }

  /// Creates an iterator that continues at the position of the subscription.
  @inlinable
  public func makeAsyncIterator() -> Iterator {
    Iterator(subscriber: subscriber)
  }

  /// The iterator of a subscription.
  public struct Iterator: AsyncIteratorProtocol {
    @usableFromInline let subscriber: Subscriber<Element>
    /// The run of elements that is being read, if the subscriber reads the log.
    @usableFromInline var run: LogBase.Run<Element>?
    /// The sequence number of the first element of the run.
    @usableFromInline var start = 0
    /// The number of elements of the run, read or not.
    @usableFromInline var count = 0

    @inlinable
    init(subscriber: Subscriber<Element>) {
      self.subscriber = subscriber
    }

    /// Returns the next element, waiting for it if necessary.
    ///
    /// - Returns: The element, or `nil` when the subscription has ended.
    @inlinable
    public mutating func next() async -> Element? {
      await next(isolation: #isolation)
    }

    /// Returns the next element, waiting for it if necessary.
    ///
    /// - Parameter actor: The caller's actor. A buffered element is returned without leaving it.
    /// - Returns: The element, or `nil` when the subscription has ended.
    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      let sequence = subscriber.position.load(ordering: .relaxed)
      // Whatever another iterator does with the position, only elements of the run are read.
      if UInt(bitPattern: sequence &- start) < UInt(bitPattern: count), let run {
        subscriber.position.store(sequence &+ 1, ordering: .relaxed)
        return run[sequence]
      }
      return await readOn(atMost: Int(Int16.max), isolation: actor)
    }

    /// Reads the next run of elements, waiting for it if necessary.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of elements of the run.
    ///   - isolation: The caller's actor.
    /// - Returns: The first element, or `nil` when the subscription has ended.
    @inlinable
    @inline(__always)
    mutating func readOn(
      atMost limit: Int,
      isolation: isolated (any Actor)?
    ) async -> Element? {
      // Usually there is another run, which is found without the cost of an asynchronous call.
      switch look(atMost: limit) {
      case .element(let element): return element
      case .ended: return nil
      case .empty: return await wait(atMost: limit, hasSpentBudget: false, isolation: isolation)
      case .spent: return await wait(atMost: limit, hasSpentBudget: true, isolation: isolation)
      }
    }

    /// The result of looking for an element.
    @usableFromInline
    enum Look: Sendable {
      case element(Element)
      /// There is no element; the position is still claimed.
      case empty
      /// Other tasks run first; the position is still claimed.
      case spent
      case ended
    }

    /// Claims the position, finds the next run of elements and takes the first.
    @inlinable
    @inline(never)
    mutating func look(atMost limit: Int) -> Look {
      subscriber.claim()
      let look = take(atMost: limit)
      switch look {
      case .empty, .spent: break
      case .element, .ended: subscriber.unclaim()
      }
      return look
    }

    /// Finds the next run of elements and takes the first, with the position claimed.
    @inlinable
    mutating func take(atMost limit: Int) -> Look {
      if !Task.isCancelled {
        if subscriber.hasSpentBudget() { return .spent }
        switch subscriber.step() {
        case .element(let element):
          subscriber.budget.spend(1, now: subscriber.core.coarseTime())
          return .element(element)
        case .run(let found, let end):
          let sequence = subscriber.position.load(ordering: .relaxed)
          let count = Swift.min(end &- sequence, Int(subscriber.budget.remaining), limit)
          subscriber.budget.spend(count, now: subscriber.core.coarseTime())
          subscriber.position.store(sequence &+ 1, ordering: .relaxed)
          let element = found[sequence]
          run = found
          start = sequence
          self.count = count
          return .element(element)
        case .empty:
          // A waiting reader retains only the place at which it continues.
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

    /// Waits for the next element, or yields the actor before it; the position is claimed.
    @inlinable
    mutating func wait(
      atMost limit: Int,
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
        switch take(atMost: limit) {
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
