import Foundation
import Hummingbird
import Logging
import Plexus
import PlexusRedis
import ServiceLifecycle

/// A server that shares its caches and events with other nodes.
///
/// Usage: `Node REDIS_SOCKET FOLDER MILLISECONDS NOTICE`. It listens to any port, which it prints. The folder stands for the
/// database: see ``UserFiles``. The numbers are the time to live of a user, and the time between a signal and the end of
/// listening.
@main
struct NodeProgram {
  static func main() async throws {
    let arguments = CommandLine.arguments
    var logger = Logger(label: "node", factory: StreamLogHandler.standardError(label:))
    logger.logLevel = .notice
    var options = RedisOptions()
    // A copy is used for a while if neither the server nor the database answers.
    options.whileIsolated = .keep(.seconds(60))
    let engine = try RedisEngine(.unix(path: arguments[1]), options: options)
    let database = UserFiles(folder: URL(filePath: arguments[2], directoryHint: .isDirectory))
    let users = makeUserCache(engine, database, timeToLive: .milliseconds(Int(arguments[3]) ?? 0))
    let renamed = CurrentValue<[Int]>([])
    let connections = ObservationBag()
    EventBus.shared
      .connect(UserRenamed.self, as: "renamed", over: engine.events, .everyNode())
      .store(in: connections)
    EventBus.shared.observe(UserRenamed.self) { event in
      renamed.update { $0.append(event.id) }
      users.refresh(event.id)
    }.store(in: connections)

    let readiness = Readiness(engine: engine, notice: .milliseconds(Int(arguments[4]) ?? 0))
    let calls = CallCounter()
    let router = Router()
    // Probes are not counted.
    readiness.addRoute(to: router)
    router.add(middleware: calls)
    addRoutes(to: router, users, renamed)
    let application = Application(
      router: router,
      configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
      onServerRunning: { channel in
        FileHandle.standardOutput.write(Data("port \(channel.localAddress?.port ?? 0)\n".utf8))
      },
      logger: logger
    )
    try await run(application, engine, users, connections, readiness, logger)
    FileHandle.standardOutput.write(Data("begun \(calls.begun) answered \(calls.answered)\n".utf8))
  }
}
