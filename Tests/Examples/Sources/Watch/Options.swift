import Foundation

/// The options of the command line.
struct Options: Sendable {
  static let usage = """
    usage: Watch [--every SECONDS] [--folder FOLDER] URL ...

    Requests each URL every five seconds, or at the given interval, and prints the size of its text.
    Cached texts are revalidated with conditional requests. While a server is unreachable, the last
    text is used, including one of an earlier run: Ctrl-C writes all texts to the folder, by default
    in the user's caches.
    """

  var urls: [String] = []
  var interval = Duration.seconds(5)
  var folder: URL?

  /// Parses a command line.
  ///
  /// - Parameter arguments: The command line, without the name of the program.
  /// - Throws: A ``UsageError`` that describes the invalid argument.
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

/// The error for an invalid command line.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}
