extension Options {
  /// Parses a command line.
  ///
  /// A value follows its option or an equals sign: `--speed max`, `--speed=max`. If an option is repeated, the
  /// last value is used.
  ///
  /// - Parameter arguments: The arguments without the name of the program.
  /// - Returns: The command.
  /// - Throws: A ``UsageError`` for invalid arguments.
  static func parse(_ arguments: [String]) throws(UsageError) -> Command {
    var options = Options()
    var offline: ClockTime?
    var online: ClockTime?
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      let word = try Word(argument)
      switch word.option {
      case "--help", "-h":
        try word.refuseValue()
        return .showHelp
      case "--plain":
        try word.refuseValue()
        options.isPlain = true
      case "--speed":
        options.pace = try word.value(from: &rest, pace)
      case "--latency":
        options.latency = .milliseconds(try word.value(from: &rest, latency))
      case "--port":
        options.port = try word.value(from: &rest, port)
      case "--until":
        options.until = try word.value(from: &rest, time)
      case "--offline-at":
        offline = try word.value(from: &rest, time)
      case "--online-at":
        online = try word.value(from: &rest, time)
      case "--filter":
        options.filter = try word.value(from: &rest, filter)
      case "--cache":
        options.cache = .folder(path: try word.value(from: &rest, folder))
      case "--no-cache":
        try word.refuseValue()
        options.cache = .nowhere
      case "--redis":
        options.redis = try word.value(from: &rest, server)
      default:
        throw .unknownOption(word.option)
      }
    }
    options.outage = try outage(from: offline, to: online, until: options.until)
    return .run(options)
  }

  private static func outage(
    from offline: ClockTime?,
    to online: ClockTime?,
    until: ClockTime?
  ) throws(UsageError) -> Outage? {
    guard let offline else {
      guard online == nil else { throw .onlineWithoutOffline }
      return nil
    }
    let end = online ?? offline + Outage.defaultMinutes
    guard end > offline else { throw .onlineNotAfterOffline(offline: offline, online: end) }
    if let until, offline >= until { throw .outageAfterTheEnd(offline: offline, until: until) }
    return Outage(begin: offline, end: end)
  }

  private static let pace = Expectation("a number from 1 to 100000 or \"max\"") { text -> Pace? in
    if text == "max" { return .maximum }
    guard let speed = Double(text), (1...100_000).contains(speed) else { return nil }
    return .live(speed: speed)
  }

  private static let latency = Expectation("a number of milliseconds from 0 to 10000") { text in
    Int(text).flatMap { (0...10_000).contains($0) ? $0 : nil }
  }

  private static let port = Expectation("a port from 0 (any free port) to 65535") { UInt16($0) }

  private static let filter = Expectation("a search text") { $0 }

  private static let folder = Expectation("a folder") { text in text.isEmpty ? nil : text }

  private static let server = Expectation("a server as HOST:PORT, or the path of a socket") {
    ServerAddress($0)
  }

  private static let time = Expectation("a time of the day as HH:MM") { ClockTime($0) }
}

/// The expected form of a value, as text and as a parser.
private struct Expectation<Value>: Sendable {
  let words: String
  let read: @Sendable (String) -> Value?

  init(_ words: String, _ read: @escaping @Sendable (String) -> Value?) {
    self.words = words
    self.read = read
  }
}

/// An argument that begins with a dash, split at the equals sign.
private struct Word {
  let option: String
  let attached: String?

  init(_ argument: String) throws(UsageError) {
    guard argument.hasPrefix("-"), argument.count > 1 else {
      throw .unexpectedArgument(argument)
    }
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    option = String(parts[0])
    attached = parts.count == 2 ? String(parts[1]) : nil
  }

  func refuseValue() throws(UsageError) {
    guard attached == nil else { throw .unneededValue(option: option) }
  }

  func value<Value>(
    from rest: inout ArraySlice<String>,
    _ expectation: Expectation<Value>
  ) throws(UsageError) -> Value {
    guard let text = attached ?? rest.popFirst() else {
      throw .missingValue(option: option, expected: expectation.words)
    }
    guard let value = expectation.read(text) else {
      throw .malformed(option: option, value: text, expected: expectation.words)
    }
    return value
  }
}
