import Plexus

/// Lets the day go by: moves its clock, announces what happens, and switches the origin off and on.
@MainActor
struct Replay {
  /// How far the day goes on at a time at maximum speed, where every answer is waited for.
  ///
  /// It is shorter than failures are remembered, so that an outage shows what remembering is good for.
  static let stepAtMaximum = Duration.seconds(10 * 60)
  /// The time between two pictures of a live day.
  static let frame = Duration.milliseconds(100)

  let script: Script
  let timeline: Timeline
  let pace: Pace
  let clock: DayClock
  let board: Board
  /// Switches the origin off and on.
  let setOrigin: @MainActor (_ isOnline: Bool) async throws -> Void
  /// Shows the board as it is.
  let show: @MainActor () throws -> Void

  /// Goes through the day to its end.
  ///
  /// - Throws: A `CancellationError` if the task is cancelled before; what
  ///   showing the board or switching the origin throws.
  func run() async throws {
    let announcements = Messenger<Announcement>()
    board.follow(announcements)
    var seen = board.moments.subscription().makeAsyncIterator()
    var entries = script.entries[...]
    var isOnline = true
    var beat = ContinuousClock.now
    var moment = timeline.begin
    while true {
      clock.advance(to: moment)
      if isOnline != timeline.isOnline(at: moment) {
        isOnline.toggle()
        try await setOrigin(isOnline)
        announcements.send(.origin(isOnline: isOnline))
      }
      while let entry = entries.first, entry.time.sinceMidnight <= moment {
        announcements.send(entry.announcement)
        entries.removeFirst()
      }
      announcements.send(.clock(moment))
      while let caughtUp = await seen.next(), caughtUp < moment {}
      try Task.checkCancellation()
      try show()
      guard let next = timeline.moment(after: moment, step: try await step(&beat)) else { break }
      moment = next
    }
    await board.settle()
    try show()
  }

  /// Waits for the next picture and returns how far the day has gone on meanwhile.
  private func step(_ beat: inout ContinuousClock.Instant) async throws -> Duration {
    guard case .live(let speed) = pace else { return Self.stepAtMaximum }
    try await Task.sleep(until: beat + Self.frame, clock: .continuous)
    let now = ContinuousClock.now
    // The day stands still while the program does, for instance in the background.
    let passed = min(now - beat, Self.frame * 3)
    beat = now
    return passed * speed
  }
}
