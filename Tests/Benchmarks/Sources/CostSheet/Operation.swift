import Synchronization

/// A public operation of the library, or of a peer, whose cost is counted.
struct Operation: Sendable {
  /// Runs the operation a number of times.
  typealias Body = @concurrent @Sendable (_ count: Int) async throws -> Void

  let name: String
  /// The highest acceptable number of instructions; `nil` for an operation that is only listed.
  let goal: Int?
  /// The number of operations in the longer of the two runs; the shorter one has a third of it.
  let count: Int
  /// Whether the operation needs a Redis server.
  let usesRedis: Bool
  let body: Body

  /// Creates an operation.
  ///
  /// - Parameters:
  ///   - name: The name of its row.
  ///   - goal: The highest acceptable number of instructions.
  ///   - count: The number of operations in the longer run, divisible by 3.
  ///   - usesRedis: Whether the operation needs a Redis server, whose instructions are not counted.
  ///   - body: Runs the operation a number of times, with a set-up that does not depend on that number.
  init(
    _ name: String,
    goal: Int? = nil,
    count: Int = 3_000,
    usesRedis: Bool = false,
    _ body: @escaping Body
  ) {
    precondition(
      count.isMultiple(of: 3),
      "The shorter run of \(name) has a third of \(count) operations"
    )
    self.name = name
    self.goal = goal
    self.count = count
    self.usesRedis = usesRedis
    self.body = body
  }
}

/// The value for caches and publishers: a reference, because most real values contain one.
final class Article: Sendable {
  let number: Int

  init(_ number: Int) {
    self.number = number
  }
}

/// Uses a result, so that the optimizer keeps the call that returned it.
@inline(never)
func use(_ article: Article) {
  if article.number == -1 { print("This number is never used.") }
}

/// Uses a result, so that the optimizer keeps the call that returned it.
@inline(never)
func use(_ article: Article?) {
  if article?.number == -1 { print("This number is never used.") }
}

/// Uses a result, so that the optimizer keeps the call that returned it.
@inline(never)
func use(_ number: Int) {
  if number == Int.min { print("This number is never used.") }
}

/// A countdown that one task waits for.
///
/// The waiting task is suspended: a task that polled would be counted, too.
final class Countdown: Sendable {
  private let remaining: Atomic<Int>
  private let waiter = Mutex<UnsafeContinuation<Void, Never>?>(nil)

  init(_ count: Int) {
    remaining = Atomic(count)
  }

  func signal() {
    guard remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    waiter.withLock { waiter in
      defer { waiter = nil }
      return waiter
    }?.resume()
  }

  func wait() async {
    await withUnsafeContinuation { continuation in
      let isZero = waiter.withLock { waiter in
        let isZero = remaining.load(ordering: .acquiring) <= 0
        if !isZero { waiter = continuation }
        return isZero
      }
      if isZero { continuation.resume() }
    }
  }
}

/// A reader of a sequence in a separate task.
struct Reader: Sendable {
  private let countdown: Countdown
  private let task: Task<Void, Never>

  /// Starts to read a sequence.
  ///
  /// - Parameters:
  ///   - sequence: The sequence.
  ///   - count: The number of elements that ``finish()`` waits for.
  init<S: AsyncSequence & Sendable>(_ sequence: S, count: Int) where S.Failure == Never {
    let countdown = Countdown(count)
    self.countdown = countdown
    task = Task.detached {
      for await _ in sequence { countdown.signal() }
    }
  }

  /// Starts to read a sequence, of which it can miss elements.
  ///
  /// - Parameters:
  ///   - sequence: The sequence.
  ///   - isLast: Whether an element is the one that ``finish()`` waits for.
  init<S: AsyncSequence & Sendable>(
    _ sequence: S,
    until isLast: @escaping @Sendable (S.Element) -> Bool
  ) where S.Failure == Never {
    let countdown = Countdown(1)
    self.countdown = countdown
    task = Task.detached {
      for await element in sequence where isLast(element) { countdown.signal() }
    }
  }

  /// Waits until the expected elements have been read.
  func finish() async {
    await countdown.wait()
    task.cancel()
  }
}

/// Lets every task that is ready run until it suspends, so that a reader waits for its first element.
///
/// All tasks share one thread and one queue.
func settle() async {
  for _ in 0..<8 { await Task.yield() }
}
