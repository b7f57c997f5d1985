import Foundation

/// The program: parses the command line, replays the day and prints the summary.
@main
@MainActor
struct DepartureBoardCommand {
  static func main() async {
    Output.prepare()
    do {
      guard let options = try Options.parse(Array(CommandLine.arguments.dropFirst())) else {
        return try Output.print(Options.help + "\n")
      }
      exit(try await Run(options).toTheEnd())
    } catch let closed as Output.Closed {
      // A reader that has closed the output needs no explanation.
      if ![0, EPIPE, EIO].contains(closed.code) {
        Output.complain("the output cannot be written: \(String(cString: strerror(closed.code)))")
      }
      exit(74)
    } catch {
      Output.complain("\(error)")
      exit(error is UsageError ? 64 : 1)
    }
  }
}
