import Plexus
import PlexusTesting
import Testing

/// The kinds of objects that fire one second after a touch.
enum TimedKind: CaseIterable, Sendable {
  case debouncer
  case variable
  case throttler

  func make(
    clock: any Clock<Duration>,
    action: (@concurrent @Sendable () async -> Void)? = nil
  ) -> TimedSubject {
    switch self {
    case .debouncer: .debouncer(Debouncer(delay: .seconds(1), clock: clock, action: action))
    case .variable:
      .variable(DebouncerVar(0, delay: .seconds(1), clock: clock, action: action.map(ignoring)))
    case .throttler:
      .throttler(Throttler(interval: .seconds(1), leading: false, clock: clock, action: action))
    }
  }

  private func ignoring(
    _ action: @escaping @concurrent @Sendable () async -> Void
  ) -> @concurrent @Sendable (Int) async -> Void {
    { @concurrent _ in await action() }
  }
}

/// An object of one of the kinds.
enum TimedSubject: Sendable {
  case debouncer(Debouncer)
  case variable(DebouncerVar<Int>)
  case throttler(Throttler)

  func touch() {
    switch self {
    case .debouncer(let debouncer): debouncer.touch()
    case .variable(let variable): variable.touch()
    case .throttler(let throttler): throttler.touch()
    }
  }

  func cancel() {
    switch self {
    case .debouncer(let debouncer): debouncer.cancel()
    case .variable(let variable): variable.cancel()
    case .throttler(let throttler): throttler.cancel()
    }
  }

  func flush() async {
    switch self {
    case .debouncer(let debouncer): await debouncer.flush()
    case .variable(let variable): await variable.flush()
    case .throttler(let throttler): await throttler.flush()
    }
  }

  /// Registers a handler for each firing, which counts as a subscriber.
  func observe(_ body: @escaping @Sendable () -> Void) -> ObservationToken {
    switch self {
    case .debouncer(let debouncer): debouncer.observe { body() }
    case .variable(let variable): variable.observe { _ in body() }
    case .throttler(let throttler): throttler.observe { body() }
    }
  }

  /// Records the firings without their values.
  func recorder() -> Recorder<Void> {
    switch self {
    case .debouncer(let debouncer): Recorder(debouncer.subscription())
    case .variable(let variable): Recorder(variable.subscription().map { _ in })
    case .throttler(let throttler): Recorder(throttler.subscription())
    }
  }

  var subscriberCount: Int {
    switch self {
    case .debouncer(let debouncer): debouncer.subscriberCount
    case .variable(let variable): variable.subscriberCount
    case .throttler(let throttler): throttler.subscriberCount
    }
  }

  /// The object itself, for weak references.
  var object: AnyObject {
    switch self {
    case .debouncer(let debouncer): debouncer
    case .variable(let variable): variable
    case .throttler(let throttler): throttler
    }
  }
}

extension ManualClock {
  /// Waits for a sleeper and advances by one second.
  func passSecond() async {
    await sleepers(1)
    advance(by: .seconds(1))
  }
}
