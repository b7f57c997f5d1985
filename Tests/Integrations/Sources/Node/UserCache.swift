import Foundation
import Plexus
import PlexusRedis

func makeUserCache(
  _ engine: RedisEngine,
  _ database: UserFiles,
  timeToLive: Duration
) -> MultiplexerMap<Int, User> {
  MultiplexerMap<Int, User>.bulk(
    id: "users",
    policy: CachePolicy(
      timeToLive: timeToLive,
      staleWhileRevalidate: .zero,
      fetchTimeout: .seconds(5),
      inheritsTaskLocals: true
    ),
    capacity: .count(100_000),
    cacher: engine.cacher(User.self, space: "users", schema: "1", retention: .seconds(300)),
    tagging: { id in [CacheTag("tenant:\(id / 1_000)")] },
    window: .milliseconds(1),
    maximumBatchSize: 500
  ) { ids in
    try database.users(ids)
  }.register()
}

/// A folder with a file for each user, whose content is the name. While a file `away` exists, it cannot be reached.
///
/// The file `calls` has a line for each user that was looked for.
struct UserFiles: Sendable {
  struct Away: ConnectivityFailure {
    let isConnectivityFailure = true
  }

  let folder: URL

  func users(_ ids: [Int]) throws -> [Int: User] {
    let names = FileManager.default
    if names.fileExists(atPath: folder.appending(path: "away").path) { throw Away() }
    try count(ids)
    var users: [Int: User] = [:]
    for id in ids {
      guard let name = names.contents(atPath: folder.appending(path: "\(id)").path) else {
        continue
      }
      users[id] = User(id: id, name: String(decoding: name, as: UTF8.self))
    }
    return users
  }

  private func count(_ ids: [Int]) throws {
    // Several nodes append to the file, with one call each.
    let file = open(folder.appending(path: "calls").path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    let lines = ids.map { "\($0)\n" }.joined()
    try FileHandle(fileDescriptor: file, closeOnDealloc: true).write(contentsOf: Data(lines.utf8))
  }
}
