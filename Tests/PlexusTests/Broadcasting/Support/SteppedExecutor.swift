import Plexus
import TestSupport

/// An executor that runs its jobs on demand, and reports the arrival of a job.
final class SteppedExecutor: SerialExecutor, Sendable {
  private let jobs = Guarded<[UnownedJob]>([])
  private let arrivals = Log<Void>()
  private let finished = Guarded(0)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    arrivals.append(())
  }

  /// Waits for a job and runs it, with the jobs that are already queued and the ones that they enqueue.
  ///
  /// A resumed task arrives by way of the global executor, hence the wait.
  func step() async {
    await step(atMost: .max)
  }

  /// Waits for a job and runs it, with the jobs that are already queued.
  func step(atMost maximum: Int) async {
    await arrivals.first(finished.withLock { $0 } + 1)
    onOwnThread {
      var count = 0
      while count < maximum,
        let job = self.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() })
      {
        job.runSynchronously(on: self.asUnownedSerialExecutor())
        self.finished.withLock { $0 += 1 }
        count += 1
      }
    }
  }

  /// Runs jobs one by one until a log has a number of entries.
  ///
  /// - Returns: The most entries that one job has added.
  func mostEntriesOfAJob<Entry>(in log: Log<Entry>, upTo total: Int) async -> Int {
    var most = 0
    while log.count < total, !Task.isCancelled {
      let count = log.count
      await step(atMost: 1)
      most = max(most, log.count - count)
    }
    return most
  }

  /// Continues until a number of jobs have run since the start.
  func ran(_ count: Int) async {
    while finished.withLock({ $0 }) < count, !Task.isCancelled { await step() }
  }
}

/// An actor that handles messages step by step.
actor SteppedHost {
  nonisolated let executor = SteppedExecutor()
  private let parcel: Parcel
  private var callCount = 0

  /// - Parameter parcel: An object that is released with this actor.
  init(holding parcel: Parcel = Parcel(0)) {
    self.parcel = parcel
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Registers a synchronous handler on this actor, and leaves the job that calls it to later steps.
  nonisolated func observe<Source: Broadcaster>(
    _ source: Source,
    _ policy: BufferingPolicy<Source.Element>,
    _ body: @escaping @Sendable (Source.Element) -> Void
  ) async -> ObservationToken {
    let registered = Log<ObservationToken>()
    let registration = Task { await self.register(source, policy, registered, body) }
    while registered.count == 0, !Task.isCancelled { await executor.step(atMost: 1) }
    await registration.value
    return registered.entries[0]
  }

  nonisolated func observe<Source: Broadcaster>(
    _ source: Source,
    _ policy: BufferingPolicy<Source.Element>,
    _ log: Log<Source.Element>
  ) async -> ObservationToken {
    await observe(source, policy) { log.append($0) }
  }

  /// Registers a synchronous handler of events on this actor, and leaves the job that calls it to later steps.
  nonisolated func observe(
    _ bus: EventBus,
    _ body: @escaping @Sendable (Notice) -> HandlerResult
  ) async -> ObservationToken {
    let registered = Log<ObservationToken>()
    let registration = Task { await self.register(bus, registered, body) }
    while registered.count == 0, !Task.isCancelled { await executor.step(atMost: 1) }
    await registration.value
    return registered.entries[0]
  }

  /// Registers a handler of either kind on this actor, and leaves the jobs that call it to later steps.
  nonisolated func observe<Source: Broadcaster>(
    _ source: Source,
    isAsync: Bool,
    _ body: @escaping @Sendable (Source.Element) -> Void
  ) async -> ObservationToken {
    guard isAsync else { return await observe(source, .unbounded, body) }
    let registered = Log<ObservationToken>()
    let registration = Task { await self.registerAsync(source, registered, body) }
    while registered.count == 0, !Task.isCancelled { await executor.step(atMost: 1) }
    await registration.value
    return registered.entries[0]
  }

  private func registerAsync<Source: Broadcaster>(
    _ source: Source,
    _ registered: Log<ObservationToken>,
    _ body: @escaping @Sendable (Source.Element) -> Void
  ) {
    let token = source.observe { (element: Source.Element) async in
      self.callCount += 1
      body(element)
    }
    registered.append(token)
  }

  private func register(
    _ bus: EventBus,
    _ registered: Log<ObservationToken>,
    _ body: @escaping @Sendable (Notice) -> HandlerResult
  ) {
    let token = bus.observe(Notice.self) { notice in
      self.callCount += 1
      return body(notice)
    }
    registered.append(token)
  }

  private func register<Source: Broadcaster>(
    _ source: Source,
    _ policy: BufferingPolicy<Source.Element>,
    _ registered: Log<ObservationToken>,
    _ body: @escaping @Sendable (Source.Element) -> Void
  ) {
    let token = source.observe(bufferingPolicy: policy) { (element: Source.Element) in
      self.callCount += 1
      body(element)
    }
    registered.append(token)
  }
}
