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
public final class Recorder<Element: Sendable>: Sendable {
  private let recording: Recording<Element>
  private let task: Task<Void, Never>

  /// Creates a recorder that begins to iterate the sequence.
  ///
  /// - Parameter sequence: The sequence to record, already registered with its source.
  public init<S: AsyncSequence & Sendable>(_ sequence: S) where S.Element == Element {
    let recording = Recording<Element>()
    let handover = Handover(sequence)
    self.recording = recording
    task = Task.detached {
      do {
        // Taken out here and held by nothing else, so that it is gone when the recording ends.
        try await recording.record(handover.take())
        recording.end(with: nil)
      } catch {
        recording.end(with: error)
      }
    }
  }

  deinit {
    recording.close()
    task.cancel()
  }

  /// The elements so far, in order.
  public var elements: [Element] { recording.elements }

  /// Whether the sequence has ended, by itself, by an error or after ``cancel()``.
  public var isFinished: Bool { recording.isFinished }

  /// The error with which the sequence ended, or `nil` if it has not ended or without one.
  public var error: (any Error)? { recording.error }

  /// Waits for the first so many elements, counted from the beginning of the recording.
  ///
  /// - Parameter count: How many elements to wait for.
  /// - Returns: Exactly so many elements; fewer only if the sequence ended before, the recorder is
  ///   cancelled, or the calling task is.
  /// - Precondition: The count is not negative.
  public func first(_ count: Int) async -> [Element] {
    precondition(count >= 0, "Wait for zero or more elements, not for \(count)")
    await recording.reach(count)
    return Array(recording.elements.prefix(count))
  }

  /// Waits until the sequence has ended.
  ///
  /// - Returns: All elements; those so far if the calling task is cancelled.
  public func finished() async -> [Element] {
    await recording.reachEnd()
    return recording.elements
  }

  /// Ends the recording: when this returns, ``elements`` no longer changes.
  public func cancel() {
    recording.close()
    task.cancel()
  }
}
