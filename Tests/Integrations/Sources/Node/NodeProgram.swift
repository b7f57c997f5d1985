import Foundation
import Hummingbird
import Logging
import Plexus
import PlexusRedis
import ServiceLifecycle

/// A server that shares its caches and events with other nodes. Usage: `Node REDIS_SOCKET FOLDER`.
///
/// It listens to any port, which it prints. The folder stands for the database: see ``UserFiles``.
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
    try await engine.connect(within: .seconds(10))
    let database = UserFiles(folder: URL(filePath: arguments[2], directoryHint: .isDirectory))
    let users = makeUserCache(engine, database)
    let renamed = CurrentValue<[Int]>([])
    let connections = ObservationBag()
    EventBus.shared
      .connect(UserRenamed.self, as: "renamed", over: engine.events, .everyNode())
      .store(in: connections)
    EventBus.shared.observe(UserRenamed.self) { event in
      renamed.update { $0.append(event.id) }
      users.refresh(event.id)
    }.store(in: connections)

    let calls = CallCounter()
    let router = Router()
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
    try await run(application, engine, users, connections, logger)
    FileHandle.standardOutput.write(Data("begun \(calls.begun) answered \(calls.answered)\n".utf8))
  }
}
