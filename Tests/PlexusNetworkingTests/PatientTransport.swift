import Foundation
import LoopbackOrigin
import PlexusNetworking
import PlexusTesting

/// A transport that waits for an answer as long as a busy machine may take.
let patientTransport = URLSessionTransport(timeout: 600)

extension HTTPRules {
  /// Rules without limits of time, for a busy machine.
  static let patient = HTTPRules(
    maximumBodyBytes: nil,
    totalTimeout: nil,
    minimumRate: nil,
    allowsFileURLs: true
  )
}

extension ManualClock {
  /// The time of day that goes with the clock: no answer becomes older because the machine is busy.
  var timeOfDay: Date {
    let (seconds, attoseconds) = now.offset.components
    return Date(timeIntervalSince1970: 1_790_000_000 + Double(seconds) + Double(attoseconds) / 1e18)
  }
}

extension LoopbackOrigin {
  /// Creates an origin whose answers have the time of day of a clock.
  convenience init(timeOf clock: ManualClock) throws {
    try self.init(timeOfDay: { Int(clock.timeOfDay.timeIntervalSince1970) })
  }
}
