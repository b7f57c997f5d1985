/// What the command line asks for.
struct Options: Equatable, Sendable {
  /// How fast the day goes by.
  var pace = Pace.live(speed: 300)
  /// Whether to print plain lines even to a terminal.
  var isPlain = false
  /// How long the origin takes to answer.
  var latency = Duration.milliseconds(25)
  /// When the origin goes away and when it comes back, if it goes at all.
  var outage: Outage?
  /// When to stop; `nil` for after the last flight.
  var until: ClockTime?
  /// The port of the origin; zero for any that is free.
  var port: UInt16 = 0
  /// What rows must contain to be shown; everything does if it is empty.
  var filter = ""
  /// Where what was fetched is kept for the next start.
  var cache = CacheChoice.standard
}

/// How fast the day goes by.
enum Pace: Equatable, Sendable {
  /// Seconds of the day in a second.
  case live(speed: Double)
  /// As fast as every question is answered.
  case maximum
}

/// Where what was fetched is kept for the next start.
enum CacheChoice: Equatable, Sendable {
  /// In the user's folder for caches.
  case standard
  case folder(path: String)
  case nowhere
}

/// A part of the day in which the origin does not answer.
struct Outage: Equatable, Sendable {
  /// How long the origin stays away unless the command line says when it comes back, in minutes.
  static let defaultMinutes = 120

  var begin: ClockTime
  var end: ClockTime
}

/// What the program is told to do.
enum Command: Equatable, Sendable {
  case showHelp
  case run(Options)
}
