import Foundation
import Plexus
import PlexusStorage

/// One run of the board.
@MainActor
final class Run {
  private let origin: DayOrigin
  private let directory: Directory
  private let board: Board
  private let page: BoardPage
  private let view: any BoardView
  private let replay: Replay
  private let filtering: FilterInput?
  private let signals: Signals
  /// The tier that several boards share, if any.
  private let tier: SharedTier?
  /// The flight changes of these boards, if any.
  private let changes: SharedChanges?
  private var endedBy: Int32?

  /// Loads the day and starts its origin.
  ///
  /// - Parameter options: The options of the command line.
  /// - Throws: An error if the day cannot be loaded, the origin cannot be started or the cache cannot be used.
  init(_ options: Options) throws {
    let numbers = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP]
    signals = Signals(options.redis == nil ? numbers : numbers + [SIGUSR1]) { signal in
      if signal != SIGTSTP, signal != SIGUSR1 { Output.hurry() }
    }
    let tier = try options.redis.map { try SharedTier($0) }
    self.tier = tier
    let day = try Day.bundled()
    let script = Script(flights: day.flights)
    let timeline = Timeline(script: script, outage: options.outage, until: options.until)
    let clock = DayClock(at: timeline.begin)
    let origin = try DayOrigin(day: day, port: options.port, latency: options.latency)
    let client = OriginClient(port: origin.port, latency: options.latency)
    let directory = try Self.directory(client, clock, options.cache, tier)
    let bus = EventBus()
    let board = Board(
      waitsForAnswers: options.pace == .maximum,
      tally: { directory.tally },
      lookUp: { flight in await directory.details(of: flight) }
    )
    board.follow(bus)
    changes = tier.map { SharedChanges(over: $0.events, flights: day.flights, bus: bus) }
    let page = board.page(filter: options.filter)
    let environment = ProcessInfo.processInfo.environment
    let isPlain = options.isPlain || !Terminal.isThere(environment)
    self.origin = origin
    self.directory = directory
    self.board = board
    self.page = page
    view = isPlain ? PlainView() : ScreenView(colours: ColourDepth(environment: environment))
    filtering = isPlain ? nil : Keyboard().map { FilterInput($0, page) }
    replay = Replay(
      script: script,
      timeline: timeline,
      pace: options.pace,
      clock: clock,
      bus: bus,
      setOrigin: { isOnline in try await origin.setOnline(isOnline) }
    )
  }

  /// Replays the day to its end or until a signal arrives, flushes the cache and prints the summary.
  ///
  /// - Returns: The exit code.
  func toTheEnd() async -> Int32 {
    let day = Task { try await showTheDay() }
    let listening = Task {
      for await signal in signals.received { handle(signal, day) }
    }
    let result = await day.result
    view.stepAside()
    board.stop()
    origin.stop()
    await flush()
    if let tier {
      await changes?.close(isReachable: tier.isReachable)
      await tier.close()
    }
    directory.removeTemporaryFiles()
    listening.cancel()
    do {
      try result.get()
    } catch is CancellationError {
      // The summary is printed after a signal, too.
    } catch let closed as Output.Closed {
      return ending(with: closed)
    } catch {
      Output.complain("\(error)")
      return ExitCode.failure
    }
    do {
      try Output.write(summary.text)
    } catch {
      return ending(with: error)
    }
    return endedBy.map(ExitCode.ended) ?? ExitCode.success
  }

  /// Reports a failed write and returns the exit code.
  private func ending(with closed: Output.Closed) -> Int32 {
    if let complaint = closed.complaint { Output.complain(complaint) }
    return endedBy.map(ExitCode.ended) ?? ExitCode.outputClosed
  }

  /// Replays the day while the view follows it; a failure of one ends both.
  private func showTheDay() async throws {
    try await withThrowingTaskGroup { group in
      group.addTask { try await self.view.follow(self.page) }
      group.addTask {
        try await self.replay.run()
        await self.board.finish()
      }
      while try await group.next() != nil {}
    }
  }

  /// Creates the directory; continues without a cache if the default one cannot be used.
  private static func directory(
    _ client: OriginClient,
    _ clock: DayClock,
    _ choice: CacheChoice,
    _ tier: SharedTier?
  ) throws -> Directory {
    switch choice {
    case .nowhere: break
    case .folder(let path):
      let folder = CacheFolder(url: URL(filePath: path, directoryHint: .isDirectory))
      return try Directory(client: client, clock: clock, cache: folder, tier: tier)
    case .standard:
      do {
        return try Directory(client: client, clock: clock, cache: .standard, tier: tier)
      } catch let error as StorageError {
        Output.complain("nothing will be kept: \(error)")
      }
    }
    return try Directory(client: client, clock: clock, tier: tier)
  }

  private func flush() async {
    do {
      try await directory.flush()
    } catch {
      // The run has succeeded; only the next start will take longer.
      Output.complain("not everything could be kept: \(error)")
    }
  }

  private var summary: Summary {
    Summary(
      state: Summary.Counts(board.state),
      tally: directory.tally,
      originRequests: origin.requestCount,
      originNotModified: origin.notModifiedCount,
      originNotFound: origin.notFoundCount,
      isShared: tier != nil,
      unsentChanges: changes?.unsentCount ?? 0
    )
  }

  /// Makes all boards forget what they have fetched.
  private func forget() {
    Task {
      do {
        try await directory.forgetEverywhere()
      } catch {
        Output.complain("not every board could be reached: \(error)")
      }
    }
  }

  private func handle(_ signal: Int32, _ day: Task<Void, any Error>) {
    if signal == SIGTSTP {
      view.stepAside()
      raise(SIGSTOP)
    } else if signal == SIGUSR1 {
      forget()
    } else if endedBy == nil {
      endedBy = signal
      day.cancel()
      board.stop()
    } else {
      // A second signal ends the program immediately.
      view.stepAside()
      directory.removeTemporaryFiles()
      exit(ExitCode.ended(by: signal))
    }
  }
}
