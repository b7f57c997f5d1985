import Foundation
import LoopbackOrigin
import Plexus
import PlexusInspector
import PlexusRedis
import PlexusStorage

/// One run of the board.
@MainActor
final class Run {
  private let options: Options
  private let origin: LoopbackOrigin
  private let clock: DayClock
  private let bus = EventBus()
  private let directory: Directory
  private let timetable: Timetable
  private let board: Board
  private let replay: Replay
  private let signals: Signals
  /// The terminal, or `nil` to print plain lines.
  private let screen: Screen?
  /// The server and the flight changes that several boards share, if any.
  private let redis: RedisEngine?
  private let changes: SharedChanges?
  /// The page that shows the board at work, if any.
  private var inspector: Inspector?
  /// The filter that is kept for the next run, and the one that this run saves.
  private let lastFilter: SavedFilter?
  private var savedFilter: SavedState?
  private var endedBy: Int32?
  /// The clearing of all boards that has begun last.
  private var forgetting: Task<Void, Never>?

  /// A folder for the badges of a run without cache, which is removed at the end.
  private static let temporaryFolder = FileManager.default.temporaryDirectory
    .appending(path: "DepartureBoard-\(UUID())", directoryHint: .isDirectory)

  /// Loads the day and starts its origin.
  ///
  /// - Parameter options: The options of the command line.
  /// - Throws: An error if the day cannot be loaded, the origin cannot be started or the cache cannot be used.
  init(_ options: Options) throws {
    let ending = [SIGINT, SIGQUIT, SIGTERM, SIGHUP]
    signals = Signals(ending + (options.redis == nil ? [SIGTSTP] : [SIGTSTP, SIGUSR1])) { signal in
      if ending.contains(signal) { Output.hurry() }
    }
    self.options = options
    let day = try Day()
    replay = Replay(day.flights, options)
    clock = DayClock(at: replay.begin)
    origin = try LoopbackOrigin(port: options.port)
    origin.latency = options.latency
    try origin.serve(day)
    redis = try options.redis.map { address in
      var settings = RedisOptions()
      // A board at its highest speed keeps its server busy, and waits for it rather than fetching twice.
      settings.commandTimeout = .seconds(5)
      return try RedisEngine(address, options: settings)
    }
    let client = OriginClient(origin.address, clock: clock)
    let directory = try Self.directory(client, options, redis)
    self.directory = directory
    timetable = Timetable(client: client)
    board = Board(
      flights: day.flights,
      statistics: { directory.statistics },
      lookUp: { flight in await directory.details(of: flight) }
    )
    board.follow(bus, waitsForAnswers: options.speed == .infinity)
    changes = redis.map { [bus, board] redis in
      SharedChanges(on: bus, of: board.name, over: redis.events) {
        if case .isolated = redis.status.events.health { false } else { true }
      }
    }
    let environment = ProcessInfo.processInfo.environment
    screen = options.isPlain ? nil : Screen(environment: environment)
    // Plain output shows what its command line says.
    lastFilter = screen.flatMap { _ in
      options.cache.flatMap { try? SavedFilter(folder: $0.appending(path: "screen")) }
    }
  }

  /// Creates the directory; continues without a cache if the default one cannot be used.
  private static func directory(
    _ client: OriginClient,
    _ options: Options,
    _ redis: RedisEngine?
  ) throws -> Directory {
    func directory(_ cache: URL?) throws -> Directory {
      let media = (cache ?? temporaryFolder).appending(path: "media")
      let badges = Badges(
        origin: client.address,
        folder: media,
        variant: .badges(in: ProcessInfo.processInfo.environment)
      )
      return try Directory(client: client, badges: badges, cache: cache, redis: redis)
    }
    do {
      return try directory(options.cache)
    } catch let error as StorageError where options.cache == Options.standardCache {
      Output.complain("nothing will be kept: \(error)")
      return try directory(nil)
    }
  }

  /// Replays the day to its end or until a signal arrives, flushes the cache and prints the summary.
  ///
  /// - Returns: The exit code.
  /// - Throws: ``Output/Closed``, or an error of switching the origin.
  func toTheEnd() async throws -> Int32 {
    if options.inspects { try await inspect() }
    let day = Task { try await showTheDay() }
    let listening = Task {
      for await signal in signals.received { handle(signal, day) }
    }
    let result = await day.result
    screen?.stepAside()
    board.stop()
    origin.stop()
    do {
      try await directory.flush()
      try await savedFilter?.flush()
    } catch {
      // The run has succeeded; only the next start will take longer.
      Output.complain("not everything could be kept: \(error)")
    }
    let sentCount = await changes?.close()
    await forgetting?.value
    // What the board could not clear on the server is older than its times to live allow.
    try? await redis?.close()
    removeTemporaryFolder()
    await inspector?.stop()
    listening.cancel()
    do {
      // The summary is printed after a signal, too.
      do { try result.get() } catch is CancellationError {}
      try Output.print(
        Summary.text(
          board.store.state,
          originCount: origin.statistics.requestCount,
          badgeCount: origin.badgeCount,
          pageCount: origin.pageCount,
          sentCount: sentCount
        )
      )
    } catch is Output.Closed where endedBy != nil {}
    return endedBy.map { 128 + $0 } ?? 0
  }

  /// Serves a page that shows the board at work, and shows its address.
  private func inspect() async throws {
    // The day is known to everyone.
    let inspector = try await Inspector(showsValues: true)
    directory.add(to: inspector)
    inspector.add(bus, named: "events")
    inspector.add(board.store, named: "board")
    if let redis { inspector.add(named: "redis") { "\(redis.status)" } }
    inspector.add(named: "origin") { [origin] in
      let statistics = origin.statistics
      return """
        \(origin.address)
        \(statistics.requestCount) requests
        \(statistics.acceptedConnections) connections so far, \(statistics.openConnections) open
        """
    }
    self.inspector = inspector
    if let screen {
      screen.note = "inspector \(inspector.url)"
    } else {
      try Output.print("inspector  \(inspector.url)\n")
    }
  }

  /// Replays the day while the page is shown; a failure of one ends both.
  private func showTheDay() async throws {
    let filter = options.filter.isEmpty ? await lastFilter?.last : options.filter
    let page = board.page(filter: filter ?? "")
    savedFilter = lastFilter?.follow(page)
    try await withThrowingTaskGroup { group in
      group.addTask { [screen, timetable] in
        if let screen {
          try await screen.follow(page, timetable)
        } else {
          try await PlainReport.follow(page)
        }
      }
      group.addTask { [self] in
        try await replay.run(clock: clock, bus: bus) { isOnline in
          if isOnline { try await origin.goOnline() } else { await origin.goOffline() }
        }
        await board.finish()
      }
      while try await group.next() != nil {}
    }
  }

  private func handle(_ signal: Int32, _ day: Task<Void, any Error>) {
    switch signal {
    case SIGTSTP:
      screen?.stepAside()
      raise(SIGSTOP)
    case SIGUSR1:
      forget()
    case _ where endedBy == nil:
      endedBy = signal
      day.cancel()
      board.stop()
    default:
      // A second signal ends the program immediately.
      screen?.stepAside()
      removeTemporaryFolder()
      exit(128 + signal)
    }
  }

  /// Makes all boards forget what they have fetched.
  private func forget() {
    forgetting = Task { [forgetting] in
      await forgetting?.value
      do {
        try await directory.forgetEverywhere()
      } catch {
        Output.complain("not every board could be reached: \(error)")
      }
    }
  }

  private func removeTemporaryFolder() {
    try? FileManager.default.removeItem(at: Self.temporaryFolder)
  }
}
