import Foundation
import PlexusRedis

/// The options of the command line.
struct Options: Equatable, Sendable {
  /// The program's folder in the user's caches directory, or `nil` if there is no such directory.
  static let standardCache = FileManager.default
    .urls(for: .cachesDirectory, in: .userDomainMask).first?.appending(path: "DepartureBoard")

  /// The number of seconds of the day for each second; infinite for as fast as all requests are answered.
  var speed = 300.0
  /// Whether to print plain lines even on a terminal.
  var isPlain = false
  /// The latency of the origin.
  var latency = Duration.milliseconds(25)
  /// The time at which the origin goes offline, or `nil` for never.
  var offline: ClockTime?
  /// The time at which the origin is online again, or `nil` for two hours later.
  var online: ClockTime?
  /// The time at which to stop, or `nil` to stop after the last flight.
  var until: ClockTime?
  /// The port of the origin, or zero for any free port.
  var port: UInt16 = 0
  /// The text that rows must contain to be shown, or an empty text for all rows.
  var filter = ""
  /// The folder of fetched values for later runs, or `nil` for none.
  var cache = standardCache
  /// The Redis server over which several boards share fetched values and flight changes, or `nil` for none.
  var redis: RedisAddress?
  /// Whether to serve a page that shows the board at work.
  var inspects = false

  /// The part of the day in which the origin is unavailable, if any.
  var outage: Range<ClockTime>? {
    offline.map { $0..<max($0, online ?? $0.advanced(by: .minutes(120))) }
  }

  /// Parses a command line.
  ///
  /// A value follows its option or an equals sign: `--speed max`, `--speed=max`. If an option is repeated, the last
  /// value is used.
  ///
  /// - Parameter arguments: The arguments without the name of the program.
  /// - Returns: The options, or `nil` if the arguments ask for help.
  /// - Throws: A ``UsageError`` for invalid arguments.
  static func parse(_ arguments: [String]) throws(UsageError) -> Options? {
    var options = Options()
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == "--help" || argument == "-h" { return nil }
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = parts.first, let rule = rules[String(name)] else {
        throw UsageError("there is no option \"\(argument)\"; --help lists them all")
      }
      guard let expected = rule.expected else {
        guard parts.count == 1 else { throw UsageError("\(name) takes no value; write it alone") }
        _ = rule.set(&options, "")
        continue
      }
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
        throw UsageError("\(name) needs \(expected)")
      }
      guard rule.set(&options, value) else {
        throw UsageError("\(name) needs \(expected), not \"\(value)\"")
      }
    }
    try options.checkTimes()
    return options
  }

  private func checkTimes() throws(UsageError) {
    guard let outage else {
      guard online == nil else {
        throw UsageError("--online-at needs --offline-at with an earlier time")
      }
      return
    }
    if let online, outage.isEmpty {
      throw UsageError("--online-at \(online) must be later than --offline-at \(outage.lowerBound)")
    }
    if let until, outage.lowerBound >= until {
      throw UsageError("--offline-at \(outage.lowerBound) must be earlier than --until \(until)")
    }
  }

  /// An option: the expected form of its value, or `nil` if it takes none, and a closure that sets a valid value.
  private struct Rule: Sendable {
    var expected: String?
    let set: @Sendable (inout Options, String) -> Bool
  }

  private static let time = "a time of the day as HH:MM"

  private static let rules: [String: Rule] = [
    "--plain": Rule { options, _ in
      options.isPlain = true
      return true
    },
    "--inspect": Rule { options, _ in
      options.inspects = true
      return true
    },
    "--no-cache": Rule { options, _ in
      options.cache = nil
      return true
    },
    "--cache": Rule(expected: "a folder") { options, text in
      options.cache = URL(filePath: text, directoryHint: .isDirectory)
      return !text.isEmpty
    },
    "--filter": Rule(expected: "a search text") { options, text in
      options.filter = text
      return true
    },
    "--speed": Rule(expected: "a number from 1 to 100000 or \"max\"") { options, text in
      let speed = Double(text) ?? 0
      options.speed = text == "max" ? .infinity : speed
      return text == "max" || (1...100_000).contains(speed)
    },
    "--latency": Rule(expected: "a number of milliseconds from 0 to 10000") { options, text in
      let count = Int(text) ?? -1
      options.latency = .milliseconds(count)
      return (0...10_000).contains(count)
    },
    "--port": Rule(expected: "a port from 0 (any free port) to 65535") { options, text in
      options.port = UInt16(text) ?? 0
      return UInt16(text) != nil
    },
    "--until": Rule(expected: time) { options, text in
      options.until = ClockTime(text)
      return options.until != nil
    },
    "--offline-at": Rule(expected: time) { options, text in
      options.offline = ClockTime(text)
      return options.offline != nil
    },
    "--online-at": Rule(expected: time) { options, text in
      options.online = ClockTime(text)
      return options.online != nil
    },
    "--redis": Rule(expected: "a server as HOST:PORT, or the path of a socket") { options, text in
      options.redis = server(text)
      return options.redis != nil
    },
  ]

  private static func server(_ text: String) -> RedisAddress? {
    if text.hasPrefix("/") { return .unix(path: text) }
    guard
      let match = text.wholeMatch(of: /\[?(.+?)\]?:([0-9]+)/), let port = UInt16(match.2), port > 0
    else { return nil }
    return .tcp(host: String(match.1), port: port)
  }
}

/// An error in the command line, with a remedy.
struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
