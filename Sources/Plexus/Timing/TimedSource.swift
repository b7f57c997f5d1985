/// The source of a debounced or throttled sequence, which iterates the base sequence in a separate task.
///
/// The task does not retain the source and is cancelled when the last iterator is released.
final class TimedSource<Base: AsyncSequence & Sendable, Schedule: FiringSchedule>: Sendable
where Base.Element: Sendable {
  /// The state that the source shares with its task.
  private final class Link: Sendable {
    let core: FiringCore<Schedule, Base.Element>
    let failure = Locked<Base.Failure?>(nil)

    init(core: FiringCore<Schedule, Base.Element>) {
      self.core = core
    }

    /// Forwards the elements until the base sequence ends or throws or the task is cancelled.
    func carry(_ base: Base) async {
      var iterator = base.makeAsyncIterator()
      do throws(Base.Failure) {
        while !Task.isCancelled, let element = try await iterator.next(isolation: nil) {
          core.accept(element)
        }
      } catch {
        failure.withLock { $0 = error }
      }
      core.release(firing: true)
    }
  }

  private let link: Link
  /// The base sequence, until its iteration begins.
  private let base: Locked<Base?>
  private let iteration = TaskSlot()

  init(_ base: Base, _ schedule: Schedule, clock: any Clock<Duration>) {
    link = Link(core: FiringCore(schedule, value: nil, clock: clock, action: nil))
    self.base = Locked(base)
  }

  deinit {
    cancel()
  }

  /// Subscribes to the emitted elements.
  func subscription() -> Subscription<Base.Element> {
    link.core.hub.subscription(bufferingPolicy: .unbounded)
  }

  /// Begins the iteration when called for the first time.
  func start() {
    guard let base = base.withLock({ $0.take() }) else { return }
    iteration.start {
      Task { [link] in await link.carry(base) }
    }
  }

  /// Ends the iteration and drops the pending element.
  func cancel() {
    base.release { $0.take() }
    iteration.cancel()
    link.core.release()
  }

  /// Returns the error that ended the base sequence, once.
  func takeFailure() -> Base.Failure? {
    link.failure.withLock { $0.take() }
  }
}

extension TimedSource {
  /// The iterator of a debounced or throttled sequence.
  struct Iterator {
    private let source: TimedSource
    private var elements: Subscription<Base.Element>.Iterator

    init(_ source: TimedSource) {
      self.source = source
      elements = source.subscription().makeAsyncIterator()
    }

    /// Returns the next element, or `nil` at the end or if the calling task is cancelled.
    mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(Base.Failure) -> Base.Element? {
      if !Task.isCancelled {
        source.start()
        if let element = await elements.next(isolation: actor) { return element }
      }
      guard !Task.isCancelled else {
        source.cancel()
        return nil
      }
      if let failure = source.takeFailure() { throw failure }
      return nil
    }
  }
}

@available(*, unavailable)
extension TimedSource.Iterator: Sendable {}
