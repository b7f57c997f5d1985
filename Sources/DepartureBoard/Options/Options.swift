/// The options of the command line.
struct Options: Equatable, Sendable {
  /// The speed of the replay.
  var pace = Pace.live(speed: 300)
  /// Whether to print plain lines even on a terminal.
  var isPlain = false
  /// The latency of the origin.
  var latency = Duration.milliseconds(25)
  /// The outage of the origin, if any.
  var outage: Outage?
  /// The time at which to stop, or `nil` to stop after the last flight.
  var until: ClockTime?
  /// The port of the origin, or zero for any free port.
  var port: UInt16 = 0
  /// The text that rows must contain to be shown, or an empty text for all rows.
  var filter = ""
  /// The storage of fetched values for later runs.
  var cache = CacheChoice.standard
  /// The Redis server over which several boards share fetched values and flight changes, or `nil` for none.
  var redis: ServerAddress?
}

/// The address of a server on this machine or another one.
enum ServerAddress: Equatable, Sendable {
  case port(UInt16, host: String)
  case socket(path: String)

  /// Reads `HOST:PORT`, or the path of a socket, which begins with a slash.
  init?(_ text: String) {
    if text.hasPrefix("/") {
      self = .socket(path: text)
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
      port > 0
    else { return nil }
    let host = text[..<colon]
    guard !host.isEmpty else { return nil }
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    self = .port(port, host: String(isBracketed ? host.dropFirst().dropLast() : host))
  }
}

/// The speed of the replay.
enum Pace: Equatable, Sendable {
  /// A number of seconds of the day for each second.
  case live(speed: Double)
  /// As fast as all requests are answered.
  case maximum
}

/// The storage of fetched values for later runs.
enum CacheChoice: Equatable, Sendable {
  /// The program's folder in the user's caches directory.
  case standard
  case folder(path: String)
  case nowhere
}

/// A part of the day in which the origin is unavailable.
struct Outage: Equatable, Sendable {
  /// The default length of an outage in minutes.
  static let defaultMinutes = 120

  var begin: ClockTime
  var end: ClockTime
}

/// The parsed command.
enum Command: Equatable, Sendable {
  case showHelp
  case run(Options)
}
