import Foundation

/// The thoroughness of the tests: the share of the histories, rounds and kills of a nightly check, where it is 1.
///
/// The environment's `PLEXUS_EFFORT` sets it, also above 1. It is 0.2 by default.
public enum Effort: Sendable {
  private static let share =
    ProcessInfo.processInfo.environment["PLEXUS_EFFORT"].flatMap { Double($0) } ?? 0.2

  /// Whether the tests are as thorough as in a nightly check.
  public static var isFull: Bool { share >= 1 }

  /// Returns the share of a number of repetitions, at least 1.
  public static func count(_ nightly: Int) -> Int {
    max(1, Int((Double(nightly) * share).rounded(.up)))
  }

  /// Returns the number of deviations of a scenario whose orders take seconds: one fewer than in a nightly check.
  public static func deviations(_ nightly: Int) -> Int { isFull ? nightly : nightly - 1 }

  /// Returns the share of some cases, evenly spread, and other ones for each offset.
  public static func some<Case>(of cases: [Case], offset: Int) -> [Case] {
    let step = max(1, Int((1 / share).rounded()))
    return cases.indices.filter { ($0 + offset) % step == 0 }.map { cases[$0] }
  }
}
