import Glibc
import Synchronization

/// A gate that holds tasks until a test lets them through.
///
/// Put one into the code under test where a test has to know that it has got there, and to decide
/// when it goes on:
///
/// ```swift
/// let gate = Gate()
/// let download = Task {
///   try await gate.wait()
///   return "done"
/// }
///
/// await gate.arrivals(1)  // the download is under way
/// gate.open()
/// let result = try await download.value
/// ```
///
/// A gate may be used from any number of threads and tasks at once. A task that waits keeps its
/// gate alive.
///
/// ## Letting through some, or all
///
/// ``open()`` lets everybody through, now and later, until ``close()``. ``admit(_:)`` lets through
/// as many as it is told, in order of arrival, and remembers what it could not use yet for those
/// who arrive later.
///
/// ## Cancellation
///
/// A task that is cancelled while it waits, or before, throws `CancellationError` at once, however
/// wide the gate is open. It has arrived all the same, and uses up no admission.
final public class Gate : Sendable {

    /// Creates a closed gate.
    public init()

    /// Whether everybody is let through.
    public var isOpen: Bool { get }

    /// The number of calls of ``wait()`` so far, whether they still wait or not.
    public var arrivalCount: Int { get }

    /// The number of tasks that the gate holds at this moment.
    public var waiterCount: Int { get }

    /// Waits until the gate is open or this task is admitted.
    ///
    /// - Throws: `CancellationError` as soon as the calling task is cancelled, also if it already is.
    public func wait() async throws

    /// Lets everybody through who waits, in order of arrival, and everybody who arrives later.
    public func open()

    /// Closes the gate: those who arrive from now on wait.
    ///
    /// Admissions that nobody has used are forgotten.
    public func close()

    /// Lets through so many tasks: those who wait, in order of arrival, then those who arrive next.
    ///
    /// An open gate admits everybody anyway, and then there is nothing to remember.
    ///
    /// - Parameter count: How many to let through.
    /// - Precondition: The count is not negative.
    public func admit(_ count: Int = 1)

    /// Waits until ``wait()`` has been called so many times, by tasks that still wait or do not.
    ///
    /// Returns at once if it already has, and when the calling task is cancelled.
    ///
    /// - Parameter count: The number of arrivals since the gate was made.
    /// - Precondition: The count is not negative.
    public func arrivals(_ count: Int) async
}

/// An order of jobs in which a scenario went wrong, and how.
public struct InterleavingFailure : Error {

    /// What went wrong.
    public enum Reason : Sendable {

        /// The scenario threw.
        case threw(any Error)

        /// Nothing is left to run, and the scenario has not returned.
        case neverFinished

        /// The scenario still had jobs to run after so many.
        case tooManyJobs(Int)

        /// The schedule asks for a choice that there is not, or the choices were others before.
        case notRepeatable

        /// Jobs cannot be held back here; the sentence says why.
        case unsupported(String)
    }

    /// Which of the jobs that were ready ran next: one number for each time that there was a choice.
    ///
    /// Zero is the oldest job. A schedule that has come to its end goes on with zeros.
    public let schedule: [Int]

    /// What went wrong.
    public let reason: PlexusTesting.InterleavingFailure.Reason

    /// Creates a failure.
    ///
    /// - Parameters:
    ///   - schedule: The order in which it went wrong.
    ///   - reason: What went wrong.
    public init(schedule: [Int], reason: PlexusTesting.InterleavingFailure.Reason)
}

extension InterleavingFailure : CustomStringConvertible {

    /// What went wrong, and how to run the same order again.
    public var description: String { get }
}

/// A clock that stands still until a test moves it.
///
/// Code that takes an `any Clock<Duration>` sleeps on it as on any other clock. The test decides
/// when the time comes, and the clock tells it when the code under test is asleep, so that no test
/// has to sleep, to yield or to hope:
///
/// ```swift
/// let clock = ManualClock()
/// let reminder = Task {
///   try await clock.sleep(for: .seconds(60))
///   return "Stand up"
/// }
///
/// await clock.sleepers(1)  // the task sleeps
/// clock.advance(by: .seconds(60))  // and now it does not
/// let text = try await reminder.value
/// ```
///
/// The clock may be used from any number of threads and tasks at once.
///
/// ## Moving the time
///
/// ``advance(by:)`` moves the time in one step and removes everybody whose deadline is not after
/// the new time, soonest deadline first, and in order of arrival where deadlines are equal. When
/// it returns they no longer count as sleeping. They have been resumed in that order; in which
/// order they then *run* is up to their executors, unless they share an actor of equal priority.
///
/// The time does not stop at the deadlines in between: a task that wakes sees the time to which
/// the clock was moved, never one before its deadline. A loop that sleeps for a second and is to
/// tick five times needs five advances, with ``sleepers(_:)`` before each:
///
/// ```swift
/// for _ in 1...5 {
///   await clock.sleepers(1)
///   clock.advance(by: .seconds(1))
/// }
/// ```
///
/// ``run()`` goes from deadline to deadline instead, until nobody sleeps, and ``run(_:)`` does so
/// until an operation has ended.
///
/// ## Cancellation
///
/// A task that is cancelled while it sleeps, or before, throws `CancellationError` at once and no
/// longer counts as sleeping. A task that is cancelled while it waits in ``sleepers(_:)`` returns
/// from there.
final public class ManualClock : Clock, Sendable {

    /// Creates a clock that stands at its start.
    public init()

    /// The time to which the clock has been moved.
    public var now: PlexusTesting.ManualClock.Instant { get }

    /// The smallest step that the clock can be moved by: an attosecond.
    public var minimumResolution: Duration { get }

    /// The number of tasks that sleep at this moment.
    public var sleeperCount: Int { get }

    /// The deadline of the task that would wake first, or `nil` if nobody sleeps.
    public var nextDeadline: PlexusTesting.ManualClock.Instant? { get }

    /// Sleeps until the clock has been moved to the deadline or beyond.
    ///
    /// A deadline that is not after ``now`` returns at once. It wakes exactly when the clock is
    /// moved that far: the tolerance is not used.
    ///
    /// - Parameters:
    ///   - deadline: The time to sleep until.
    ///   - tolerance: Ignored.
    /// - Throws: `CancellationError` as soon as the calling task is cancelled, also if it already is.
    public func sleep(until deadline: PlexusTesting.ManualClock.Instant, tolerance: Duration? = nil) async throws

    /// Moves the clock forward, and wakes everybody whose deadline has come.
    ///
    /// - Parameter duration: How far to move it. Zero wakes nobody: there are no sleepers whose
    ///   deadline is not after ``now``.
    /// - Precondition: The duration is not negative.
    public func advance(by duration: Duration)

    /// Moves the clock forward to an instant, and wakes everybody whose deadline has come.
    ///
    /// - Parameter instant: The time to move it to.
    /// - Precondition: The instant is not before ``now``.
    public func advance(to instant: PlexusTesting.ManualClock.Instant)

    /// Moves the clock from deadline to deadline until nobody sleeps.
    ///
    /// It stands still at every deadline on its way, so that those who are due there are resumed
    /// before it goes on, and comes to rest at the last one. Whoever goes to sleep while it runs is
    /// woken, too; whoever does so after it has returned sleeps on. A task that was woken may need some
    /// time to get to its next sleep: where there are several in a row, use ``run(_:)``. Among many tasks
    /// that sleep again and again there may always be one that sleeps, and then it does not return.
    public func run()

    /// Carries out an operation, and moves the clock to the next deadline whenever somebody sleeps.
    ///
    /// Nobody has to know how often the operation sleeps, and for how long:
    ///
    /// ```swift
    /// let clock = ManualClock()
    /// try await clock.run {
    ///   for attempt in 1...5 { try await clock.sleep(for: .seconds(attempt)) }
    /// }
    /// print(clock.now.offset)  // 15 seconds
    /// ```
    ///
    /// Others who sleep on the clock are woken, too, as long as the operation goes on and no longer.
    ///
    /// The clock does not wait until everybody sleeps who is going to. Where two tasks sleep at the
    /// same time, the order in which they get to it decides which deadline comes first.
    ///
    /// - Parameter operation: What sleeps on the clock. It runs where the caller does.
    /// - Returns: What the operation returns. The clock stands still again.
    /// - Throws: What the operation throws.
    public func run<Value, Failure>(_ operation: nonisolated(nonsending) () async throws(Failure) -> Value) async throws(Failure) -> Value where Failure : Error

    /// Waits until at least so many tasks sleep on the clock at once.
    ///
    /// Returns at once if they already do, and when the calling task is cancelled.
    ///
    /// - Parameter count: The number of sleeping tasks to wait for.
    /// - Precondition: The count is not negative.
    public func sleepers(_ count: Int) async
}

extension ManualClock {

    /// A point in time of a manual clock.
    ///
    /// Every manual clock starts at `Instant()` and counts from there. Instants are plain numbers:
    /// those of two clocks can be compared, which says nothing about the clocks.
    public struct Instant : InstantProtocol, Hashable, Sendable {

        /// The time since the start of the clock.
        public let offset: Duration

        /// Creates the instant that is this long after the start of the clock.
        ///
        /// - Parameter offset: The time since the start of the clock.
        public init(offset: Duration = .zero)

        /// Returns the instant that is this much later, or earlier if the duration is negative.
        ///
        /// - Parameter duration: How much later.
        /// - Returns: The later instant.
        public func advanced(by duration: Duration) -> PlexusTesting.ManualClock.Instant

        /// Returns the time from this instant to another, negative if the other one is earlier.
        ///
        /// - Parameter other: The instant to measure to.
        /// - Returns: The time between the two.
        public func duration(to other: PlexusTesting.ManualClock.Instant) -> Duration

        /// Returns whether one instant is earlier than another.
        ///
        /// - Parameters:
        ///   - lhs: One instant.
        ///   - rhs: Another instant.
        /// - Returns: Whether the first is earlier than the second.
        public static func < (lhs: PlexusTesting.ManualClock.Instant, rhs: PlexusTesting.ManualClock.Instant) -> Bool
    }
}

extension ManualClock.Instant : CustomStringConvertible {

    /// The time since the start of the clock, as `1.5 seconds`.
    public var description: String { get }
}

/// A notebook of everything that a sequence yields.
///
/// A recorder iterates the sequence in a task of its own, from the moment it is made:
///
/// ```swift
/// let (numbers, continuation) = AsyncStream.makeStream(of: Int.self)
/// let recorder = Recorder(numbers)
/// continuation.yield(1)
/// continuation.yield(2)
/// let two = await recorder.first(2)  // [1, 2]
/// continuation.finish()
/// let all = await recorder.finished()  // [1, 2]
/// ```
///
/// The iteration begins at some time after `init` has returned. Hand in a sequence that is already
/// registered with its source, as the result of a `subscribe` is, and no element is missed.
///
/// A recorder may be used from any number of threads and tasks at once.
///
/// ## Errors
///
/// A sequence that throws ends the recording like one that returns `nil`; ``error`` tells which.
///
/// ## Cancellation and release
///
/// ``cancel()``, and releasing the last reference to the recorder, cancel the task that iterates,
/// and nothing is recorded any more. The recording has finished, and ``isFinished`` is `true`, when
/// the sequence has noticed and both it and its iterator have been released. Cancelling a task that
/// waits in ``first(_:)`` or ``finished()`` ends that wait and nothing else.
final public class Recorder<Element> : Sendable where Element : Sendable {

    /// Creates a recorder that begins to iterate the sequence.
    ///
    /// - Parameter sequence: The sequence to record, already registered with its source.
    public init<S>(_ sequence: S) where Element == S.Element, S : Sendable, S : AsyncSequence

    deinit

    /// The elements so far, in order.
    public var elements: [Element] { get }

    /// Whether the sequence has ended, by itself, by an error or after ``cancel()``.
    public var isFinished: Bool { get }

    /// The error with which the sequence ended, or `nil` if it has not ended or without one.
    public var error: (any Error)? { get }

    /// Waits for the first so many elements, counted from the beginning of the recording.
    ///
    /// - Parameter count: How many elements to wait for.
    /// - Returns: Exactly so many elements; fewer only if the sequence ended before, the recorder is
    ///   cancelled, or the calling task is.
    /// - Precondition: The count is not negative.
    public func first(_ count: Int) async -> [Element]

    /// Waits until the sequence has ended.
    ///
    /// - Returns: All elements; those so far if the calling task is cancelled.
    public func finished() async -> [Element]

    /// Ends the recording: when this returns, ``elements`` no longer changes.
    public func cancel()
}

/// A source that answers from a script: the first fetch gets the first result, and so on.
///
/// ```swift
/// struct Offline: Error {}
///
/// let server = ScriptedFetcher<Int>([.success(1), .failure(Offline()), .success(2)])
/// let first = try await server.fetch()
/// let second = try? await server.fetch()
/// let third = try await server.fetch()
/// ```
///
/// After the last step the fetcher repeats it, so that `ScriptedFetcher([.success(1)])` answers
/// every fetch alike. How many there were is ``count``: a test that allows two says
/// `#expect(server.count == 2)`.
///
/// A fetcher may be used from any number of threads and tasks at once; every call takes a step of
/// its own. With a gate, a fetch takes its step when it begins and then waits at the gate, so that
/// a test knows that it is under way and decides when it ends.
final public class ScriptedFetcher<Value> : Sendable where Value : Sendable {

    /// Creates a fetcher with a script.
    ///
    /// - Parameters:
    ///   - steps: The result of the first fetch, of the second, and so on. The last one is repeated.
    ///   - gate: Where every fetch waits before it returns; `nil` if it returns at once.
    /// - Precondition: There is at least one step.
    public init(_ steps: [Result<Value, any Error>], gate: PlexusTesting.Gate? = nil)

    /// The number of fetches that have begun.
    public var count: Int { get }

    /// Takes the next step of the script.
    ///
    /// - Returns: The value of the step.
    /// - Throws: The error of the step; `CancellationError` if the calling task is cancelled at the
    ///   gate. Without a gate, cancellation changes nothing.
    public func fetch() async throws -> Value
}

/// Runs a scenario in first-come-first-served order, and in every order of its jobs that strays from
/// it at most so many times.
///
/// A job is what a task does between two suspension points. Which of the jobs that are ready runs
/// next is all that can differ between two runs of a scenario whose state is kept by actors and
/// locks. A promise that holds in every order holds; a race that a thousand repetitions miss is found
/// at once, and always in the same way:
///
/// ```swift
/// actor Account {
///   private(set) var balance = 0
///
///   func deposit() async {
///     let before = balance
///     await hop()  // stands for any call that waits
///     balance = before + 1
///   }
/// }
///
/// struct LostUpdate: Error {}
///
/// // Throws: the second deposit may read the balance before the first has written it.
/// try forEveryInterleaving {
///   let account = Account()
///   async let first: Void = account.deposit()
///   async let second: Void = account.deposit()
///   _ = await (first, second)
///   guard await account.balance == 2 else { throw LostUpdate() }
/// }
/// ```
///
/// The scenario runs many times and makes everything that it uses itself, every time. It fails by
/// throwing; what it expects with `#expect` belongs to the test as usual. An order is tried after
/// those that stray at fewer of the same choices, so that the failure that is reported has no
/// deviation that it does not need. It holds its schedule, with which
/// ``replayInterleaving(_:jobLimit:_:)`` runs the same order again.
///
/// ## What a scenario may use
///
/// Tasks, groups, `async let`, actors, continuations, streams, cancellation, ``ManualClock``, ``Gate``,
/// ``Recorder`` and everything made from these. Where it needs one more place to be interrupted, it
/// calls ``hop()``. A task that goes to an actor stands in the queue of the actor from then on; a hop
/// before the call is a place where another task can overtake it.
///
/// ## Limits
///
/// - What leaves the calling thread is not ordered, and looks like a task that never finishes: the
///   main actor, executors of one's own, real clocks, other threads, and `Task.yield()`.
/// - Only the order of jobs is tried. Two threads in the same function at once, which a lock or an
///   atomic has to withstand, are the business of the thread sanitizer.
/// - A scenario must behave alike whenever it runs in the same order: nothing random, and no state
///   that outlives the run. Optimised code releases objects where it likes; run scenarios in debug
///   builds.
/// - The calling thread is occupied until the end. Calls on several threads take turns, so put
///   all of them into one serialized suite; other tests go on in the meantime.
/// - The number of orders grows fast with the tasks and steps of the scenario. Six deviations, the
///   default, have found errors that two had missed; a large scenario has to do with fewer.
///
/// ## Where it works
///
/// The jobs are held back by a hook of the Swift runtime, `swift_task_enqueueGlobal_hook`, that is
/// exported for tools like this and documented nowhere. It is set once and passes on what does not
/// belong to a scenario. Where the runtime does not have it (in a statically linked one, for example)
/// or does not ask it, an ``InterleavingFailure`` with the reason
/// ``InterleavingFailure/Reason/unsupported(_:)`` says so before the scenario runs. It has been tried
/// on Linux with Swift 6.3, and leaves out no platform on purpose.
///
/// - Parameters:
///   - deviations: How often a run may prefer another job to the oldest.
///   - jobLimit: How many jobs a run may take.
///   - scenario: What to run.
/// - Returns: The number of orders, each of which has been tried once.
/// - Throws: ``InterleavingFailure`` for the first order that went wrong.
/// - Precondition: It is not called by a scenario.
@discardableResult
public func forEveryInterleaving(deviations: Int = 6, jobLimit: Int = 10_000, _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void) throws -> Int

/// Lets every other job that is ready go first.
///
/// It is one more place where ``forEveryInterleaving(deviations:jobLimit:_:)`` may interrupt a task.
/// Unlike `Task.yield()`, it is a suspension that the scenario knows of.
public func hop() async

/// Runs a scenario in one order: that of a failure which
/// ``forEveryInterleaving(deviations:jobLimit:_:)`` has reported.
///
/// The message of a failure says how to call it:
///
/// ```swift
/// // Of the two tasks that are ready, the second one runs first.
/// try replayInterleaving([1]) {
///   let gate = Gate()
///   let waiter = Task { try await gate.wait() }
///   let opener = Task { gate.open() }
///   try await waiter.value
///   await opener.value
/// }
/// ```
///
/// - Parameters:
///   - schedule: Which job runs next, for each time that there is a choice; zero is the oldest, and
///     after the end of the schedule it is always the oldest.
///   - jobLimit: How many jobs the run may take.
///   - scenario: What to run.
/// - Throws: ``InterleavingFailure`` if it goes wrong, or if the schedule does not fit the scenario.
/// - Precondition: It is not called by a scenario.
public func replayInterleaving(_ schedule: [Int], jobLimit: Int = 10_000, _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void) throws

