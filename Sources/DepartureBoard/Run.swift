import Foundation
import Plexus

/// One run of the board, with everything that it needs.
@MainActor
final class Run {
  private let origin: DayOrigin
  private let directory: Directory
  private let board: Board
  private let view: any BoardView
  private let replay: Replay
  private let signals = Signals([SIGINT, SIGTERM, SIGHUP, SIGTSTP])
  private var endedBy: Int32?

  /// Reads the day and starts its origin.
  ///
  /// - Parameter options: What the command line asks for.
  /// - Throws: An error that says why the day cannot be read or the origin not started.
  init(_ options: Options) throws {
    let day = try Day.bundled()
    let script = Script(flights: day.flights)
    let timeline = Timeline(script: script, outage: options.outage, until: options.until)
    let clock = DayClock(at: timeline.begin)
    let origin = try DayOrigin(day: day, port: options.port, latency: options.latency)
    let directory = Directory(client: OriginClient(port: origin.port), clock: clock)
    let board = Board(waitsForAnswers: options.pace == .maximum) { flight in
      await directory.details(of: flight)
    }
    let isPlain = options.isPlain || !Terminal.isThere
    let isColoured = ProcessInfo.processInfo.environment["NO_COLOR", default: ""].isEmpty
    let view: any BoardView = isPlain ? PlainView() : ScreenView(isColoured: isColoured)
    self.origin = origin
    self.directory = directory
    self.board = board
    self.view = view
    replay = Replay(
      script: script,
      timeline: timeline,
      pace: options.pace,
      clock: clock,
      board: board,
      setOrigin: { isOnline in try await origin.setOnline(isOnline) },
      show: { try view.show(board.state, reports: board.takeReports(), directory.tally) }
    )
  }

  /// Goes through the day to its end, or until a signal comes, and prints the summary.
  ///
  /// - Returns: What to tell the shell.
  func toTheEnd() async -> Int32 {
    let day = Task { try await replay.run() }
    let listening = signals.received.observe { [self] signal in handle(signal, day) }
    let result = await day.result
    listening.cancel()
    view.stepAside()
    board.stop()
    origin.stop()
    do {
      try result.get()
    } catch is CancellationError {
      // What has been counted so far is worth telling, too.
    } catch is Output.Closed {
      return ExitCode.outputClosed
    } catch {
      Output.complain("\(error)")
      return ExitCode.failure
    }
    guard (try? Output.write(summary.text)) != nil else { return ExitCode.outputClosed }
    return endedBy.map(ExitCode.ended) ?? ExitCode.success
  }

  private var summary: Summary {
    Summary(
      state: Summary.Counts(board.state),
      tally: directory.tally,
      originRequests: origin.requestCount,
      originNotFound: origin.notFoundCount
    )
  }

  private func handle(_ signal: Int32, _ day: Task<Void, any Error>) {
    if signal == SIGTSTP {
      view.stepAside()
      raise(SIGSTOP)
    } else if endedBy == nil {
      endedBy = signal
      day.cancel()
    } else {
      // Somebody is in a hurry.
      view.stepAside()
      exit(ExitCode.ended(by: signal))
    }
  }
}
