extension BatchWindow {
  /// The rules by which single requests share one call of a fetch for several keys.
  @usableFromInline
  struct Rules: Hashable, Sendable {
    /// The time that the first key of a batch waits for others.
    let window: Duration
    /// The largest number of keys in a batch, if there is one.
    let maximumSize: Int?

    @usableFromInline
    init(window: Duration, maximumSize: Int?) {
      precondition(window >= .zero, "The window of a batch cannot be negative")
      if let maximumSize {
        precondition(maximumSize >= 1, "A batch needs room for one key; use nil for no limit")
      }
      self.window = window
      self.maximumSize = maximumSize
    }

    /// Divides the flights of one call into batches.
    func batches(of flights: [Flight]) -> [[Flight]] {
      let size = maximumSize ?? flights.count
      return stride(from: 0, to: flights.count, by: size).map { start in
        Array(flights[start..<min(start + size, flights.count)])
      }
    }

    /// Whether single flights wait for others.
    @usableFromInline var delaysFlights: Bool { window > .zero }
  }
}

/// The flights that wait for the end of their window, or for their batch to be full.
@usableFromInline
final class BatchWindow: Sendable {
  private struct State: Sendable {
    var batch: BatchState<Flight>
    /// The timer that closes the open batch at the end of its window.
    var timer = MovableTimer()
    /// Launches the open batch with the task-local values of its first caller, if they are inherited.
    var departure: OneShot<[Flight]>?
  }

  private let window: Duration
  private let clock: any ErasedClock
  private let state: Locked<State>

  init(_ rules: Rules, clock: any Clock<Duration>) {
    window = rules.window
    self.clock = clock.erased()
    state = Locked(State(batch: BatchState(maximumSize: rules.maximumSize)))
  }

  /// Adds flights to the open batch, and opens others as needed.
  ///
  /// - Parameters:
  ///   - flights: The flights.
  ///   - launch: A closure that launches a departing batch.
  func add(_ flights: [Flight], _ launch: @escaping @Sendable ([Flight]) -> Void) {
    for flight in flights {
      // Created before it is known to be needed, because another caller can fill the batch at any moment.
      let departure = flight.plan.inheritsTaskLocals ? OneShot<[Flight]>() : nil
      let (step, old) = state.withLock { state in
        let step = state.batch.add(flight) { $0.isCancelled || $0.isSettled }
        switch step {
        case .joins:
          return (step, (sleeper: MovableTimer.Sleeper?.none, departure: OneShot<[Flight]>?.none))
        case .opens:
          state.departure = departure
          return (step, (nil, nil))
        case .departs: return (step, (state.timer.clear(), state.departure.take()))
        }
      }
      switch step {
      case .joins:
        break
      case .opens(let number):
        if let departure {
          // The fetch is started by a task with the task-local values of this caller.
          Task { launch(await departure.value()) }
        }
        open(number, launch)
      case .departs(let flights):
        old.sleeper?.cancel()
        if let departure = old.departure { departure.set(flights) } else { launch(flights) }
      }
    }
  }

  /// Starts the timer of a batch.
  private func open(_ number: Int, _ launch: @escaping @Sendable ([Flight]) -> Void) {
    let wake = clock.now() + window.limited
    let move = state.withLock { $0.batch.isOpen(number) ? $0.timer.set(wake) : nil }
    move?.perform(on: clock) { [self] _, _ in
      let (flights, departure) = state.withLock { state in
        guard state.batch.isOpen(number) else { return ([Flight](), OneShot<[Flight]>?.none) }
        _ = state.timer.clear()
        return (state.batch.close(number), state.departure.take())
      }
      guard !flights.isEmpty else { return nil }
      if let departure { departure.set(flights) } else { launch(flights) }
      return nil
    }
  }
}
