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

  private enum Progress: Sendable {
    case waiting(Base)
    case begun(Task<Void, Never>)
    case ended
  }

  private let link: Link
  private let progress: Locked<Progress>

  init(_ base: Base, _ schedule: Schedule, clock: any Clock<Duration>) {
    link = Link(core: FiringCore(schedule, value: nil, clock: clock, action: nil))
    progress = Locked(.waiting(base))
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
    let base = progress.withLock { progress -> Base? in
      guard case .waiting(let base) = progress else { return nil }
      return base
    }
    guard let base else { return }
    let task = Task { [link] in await link.carry(base) }
    let garbage = progress.withLock { progress in
      let garbage = progress
      if case .waiting = progress { progress = .begun(task) }
      return garbage
    }
    if case .waiting = garbage { return }
    task.cancel()
  }

  /// Ends the iteration and drops the pending element.
  func cancel() {
    let former = progress.withLock { progress in
      let former = progress
      progress = .ended
      return former
    }
    if case .begun(let task) = former { task.cancel() }
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
