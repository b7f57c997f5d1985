import Foundation
import Plexus

/// The program: reads the command line, replays the day, prints what it has come to.
@main
@MainActor
struct DepartureBoardCommand {
  static func main() async {
    Output.occupyStandardStreams()
    // A reader that has gone away is noticed when writing to it fails.
    signal(SIGPIPE, SIG_IGN)
    // So is a limit on the size of files.
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

/// What the program tells the shell when it ends.
enum ExitCode {
  static let success: Int32 = 0
  /// The day cannot be read, or the origin cannot be started.
  static let failure: Int32 = 1
  /// The command line cannot be understood.
  static let usage: Int32 = 64
  /// What is written does not arrive.
  static let outputClosed: Int32 = 74

  /// A signal has ended the program.
  static func ended(by signal: Int32) -> Int32 {
    128 + signal
  }
}
