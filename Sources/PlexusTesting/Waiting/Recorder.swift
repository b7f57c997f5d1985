/// A recorder that collects the elements of an asynchronous sequence.
///
/// A recorder iterates the sequence in its own task, which it starts when it is created:
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
/// The iteration begins some time after `init` returns. To miss no element, pass a sequence that is already
/// registered with its source, such as the result of a `subscribe` method.
///
/// A recorder can be used from any number of threads and tasks at once.
///
/// ## Errors
///
/// A sequence that throws ends the recording in the same way as one that returns `nil`. The thrown error
/// is available in ``error``.
///
/// ## Cancellation and release
///
/// ``cancel()`` and the release of the recorder cancel the iterating task, and no further elements are
/// recorded. ``isFinished`` becomes `true` once the sequence has ended and the task has released both the
/// sequence and its iterator. Cancelling a task that waits in ``first(_:)`` or ``finished()`` ends that wait
/// only.
///
/// ## Topics
///
/// ### Creating a recorder
/// - ``init(_:)``
///
/// ### Waiting for elements
/// - ``first(_:)``
/// - ``finished()``
///
/// ### Reading
/// - ``elements``
/// - ``isFinished``
/// - ``error``
///
/// ### Stopping
/// - ``cancel()``
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
        // Nothing else holds the sequence, so it is released before the recording ends.
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

  /// The elements recorded so far, in order.
  public var elements: [Element] { recording.elements }

  /// Whether the sequence has ended: by itself, with an error or after ``cancel()``.
  public var isFinished: Bool { recording.isFinished }

  /// The error that ended the sequence, if any.
  public var error: (any Error)? { recording.error }

  /// Waits for a number of elements, counted from the beginning of the recording.
  ///
  /// - Parameter count: The number of elements to wait for.
  /// - Returns: The first `count` elements, or fewer if the sequence ends, the recorder is cancelled or the
  ///   calling task is cancelled.
  /// - Precondition: The count is not negative.
  public func first(_ count: Int) async -> [Element] {
    precondition(count >= 0, "Wait for zero or more elements, not for \(count)")
    await recording.reach(count)
    return Array(recording.elements.prefix(count))
  }

  /// Waits until the sequence has ended.
  ///
  /// - Returns: All elements, or the elements so far if the calling task is cancelled.
  public func finished() async -> [Element] {
    await recording.reachEnd()
    return recording.elements
  }

  /// Ends the recording; ``elements`` does not change after this call returns.
  public func cancel() {
    recording.close()
    task.cancel()
  }
}
