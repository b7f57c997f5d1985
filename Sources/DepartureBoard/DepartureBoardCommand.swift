import Foundation
import Plexus

/// The program: parses the command line, replays the day and prints the summary.
@main
@MainActor
struct DepartureBoardCommand {
  static func main() async {
    Output.occupyStandardStreams()
    // A closed pipe is detected when a write fails.
    signal(SIGPIPE, SIG_IGN)
    // The same applies to a file size limit.
    signal(SIGXFSZ, SIG_IGN)
    do {
      switch try Options.parse(Array(CommandLine.arguments.dropFirst())) {
      case .showHelp:
        try Output.write(Usage.text + "\n")
      case .run(let options):
        exit(try await Run(options).toTheEnd())
      }
    } catch let error as UsageError {
      Output.complain("\(error)")
      exit(ExitCode.usage)
    } catch let closed as Output.Closed {
      if let complaint = closed.complaint { Output.complain(complaint) }
      exit(ExitCode.outputClosed)
    } catch {
      Output.complain("\(error)")
      exit(ExitCode.failure)
    }
  }
}

/// The exit codes of the program.
enum ExitCode {
  static let success: Int32 = 0
  /// The day cannot be loaded, or the origin cannot be started.
  static let failure: Int32 = 1
  /// The command line is invalid.
  static let usage: Int32 = 64
  /// The output cannot be written.
  static let outputClosed: Int32 = 74

  /// Returns the exit code for a program that a signal has ended.
  static func ended(by signal: Int32) -> Int32 {
    128 + signal
  }
}
