import Plexus

/// Lets the day go by: moves its clock, posts what happens, and switches the origin off and on.
///
/// It knows nobody who listens. Events of different types have no common order, and a moment is not over
/// before everybody has dealt with it: therefore each event is waited for before the next one is posted.
@MainActor
struct Replay {
  /// How far the day goes on at a time at maximum speed, where every answer is waited for.
  ///
  /// It is shorter than failures are remembered, so that an outage shows what remembering is good for.
  static let stepAtMaximum = Duration.seconds(10 * 60)
  /// The time between two moments of a live day.
  static let beat = Duration.milliseconds(100)

  let script: Script
  let timeline: Timeline
  let pace: Pace
  let clock: DayClock
  let bus: EventBus
  /// Switches the origin off and on.
  let setOrigin: @MainActor (_ isOnline: Bool) async throws -> Void

  /// Goes through the day to its end.
  ///
  /// - Throws: A `CancellationError` if the task is cancelled before, once those who listen have dealt with
  ///   the moment; what switching the origin throws.
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

  /// Waits for the next moment and returns how far the day has gone on meanwhile.
  private func step(_ beat: inout ContinuousClock.Instant) async throws -> Duration {
    guard case .live(let speed) = pace else { return Self.stepAtMaximum }
    try await Task.sleep(until: beat + Self.beat, clock: .continuous)
    let now = ContinuousClock.now
    // The day stands still while the program does, for instance in the background.
    let passed = min(now - beat, Self.beat * 3)
    beat = now
    return passed * speed
  }
}
