import Foundation

/// What the command line asks for.
struct Options: Sendable {
  static let usage = """
    usage: Watch [--every SECONDS] [--folder FOLDER] URL ...

    Asks for each URL every five seconds, or as often as you say, and prints how much is there. The
    server is asked only whether it has changed. While it is away the last answer is used, also one
    of an earlier start: Ctrl-C writes everything to the folder, the user's caches if none is given.
    """

  var urls: [String] = []
  var interval = Duration.seconds(5)
  var folder: URL?

  /// Reads a command line.
  ///
  /// - Parameter arguments: The command line, without the name of the program.
  /// - Throws: A ``UsageError`` that says what cannot be understood.
  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--every":
        guard let seconds = rest.popFirst().flatMap(Double.init), seconds > 0 else {
          throw UsageError(description: "--every needs a number of seconds.")
        }
        interval = .seconds(seconds)
      case "--folder":
        guard let path = rest.popFirst() else {
          throw UsageError(description: "--folder needs a folder.")
        }
        folder = URL(filePath: path, directoryHint: .isDirectory)
      default:
        guard URL(string: argument)?.host() != nil else {
          throw UsageError(description: "\(argument) is neither an option nor a URL.")
        }
        urls.append(argument)
      }
    }
    guard !urls.isEmpty else { throw UsageError(description: "There is no URL.") }
  }
}

/// A command line that cannot be understood.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}
