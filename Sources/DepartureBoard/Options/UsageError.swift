/// An error in the command line.
enum UsageError: Error, Equatable {
  case unknownOption(String)
  case unexpectedArgument(String)
  case missingValue(option: String, expected: String)
  case unneededValue(option: String)
  case malformed(option: String, value: String, expected: String)
  case onlineWithoutOffline
  case onlineNotAfterOffline(offline: ClockTime, online: ClockTime)
  case outageAfterTheEnd(offline: ClockTime, until: ClockTime)
}

extension UsageError: CustomStringConvertible {
  /// A line that describes the error and a remedy.
  var description: String {
    switch self {
    case .unknownOption(let option):
      "there is no option \(option); --help lists them all"
    case .unexpectedArgument(let argument):
      "\"\(argument)\" is not an option; --help lists them all"
    case .missingValue(let option, let expected):
      "\(option) needs \(expected)"
    case .unneededValue(let option):
      "\(option) takes no value; write it alone"
    case .malformed(let option, let value, let expected):
      "\(option) needs \(expected), not \"\(value)\""
    case .onlineWithoutOffline:
      "--online-at needs --offline-at with an earlier time"
    case .onlineNotAfterOffline(let offline, let online):
      "--online-at \(online) must be later than --offline-at \(offline)"
    case .outageAfterTheEnd(let offline, let until):
      "--offline-at \(offline) must be earlier than --until \(until)"
    }
  }
}
