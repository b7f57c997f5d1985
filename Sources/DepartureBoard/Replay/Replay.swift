import Plexus

/// The replay of the day, which moves the clock, posts events, and switches the origin off and on.
///
/// Events of different types have no common order, and a moment must not end before all its events have been
/// handled. Each post is therefore awaited before the next one.
@MainActor
struct Replay {
  /// The step at maximum speed, where every response is awaited.
  ///
  /// It is shorter than the time for which failures are remembered, so that an outage shows their effect.
  static let stepAtMaximum = Duration.seconds(10 * 60)
  /// The time between two moments of a live day.
  static let beat = Duration.milliseconds(100)

  let script: Script
  let timeline: Timeline
  let pace: Pace
  let clock: DayClock
  let bus: EventBus
  /// A closure that switches the origin off and on.
  let setOrigin: @MainActor (_ isOnline: Bool) async throws -> Void

  /// Replays the day to its end.
  ///
  /// - Throws: A `CancellationError` if the task is cancelled, after the current moment has been handled, or
  ///   the error of switching the origin.
  func run() async throws {
    var entries = script.entries[...]
    var isOnline = true
    var beat = ContinuousClock.now
    var moment = timeline.begin
    while true {
      clock.advance(to: moment)
      if isOnline != timeline.isOnline(at: moment) {
        isOnline.toggle()
        try await setOrigin(isOnline)
        await bus.postAndWait(OriginChange(isOnline: isOnline))
      }
      while let entry = entries.first, entry.time.sinceMidnight <= moment {
        await bus.postAndWait(entry.change)
        entries.removeFirst()
      }
      await bus.postAndWait(MomentReached(moment: moment))
      try Task.checkCancellation()
      guard let next = timeline.moment(after: moment, step: try await step(&beat)) else { return }
      moment = next
    }
  }

  /// Waits for the next moment and returns by how much the day has advanced.
  private func step(_ beat: inout ContinuousClock.Instant) async throws -> Duration {
    guard case .live(let speed) = pace else { return Self.stepAtMaximum }
    try await Task.sleep(until: beat + Self.beat, clock: .continuous)
    let now = ContinuousClock.now
    // The day pauses while the program is suspended, for example in the background.
    let passed = min(now - beat, Self.beat * 3)
    beat = now
    return passed * speed
  }
}
