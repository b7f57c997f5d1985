import Foundation
import Plexus
import PlexusRedis

/// A process with a map over a Redis server, which carries out the commands of its standard input.
///
/// Its values are those of an ``Origin``.
///
/// | Command | Answer |
/// |---|---|
/// | `get KEY` | the value, or the error with its kinds |
/// | `clear` | `cleared`, once no process uses older values |
/// | `clear KEY` | `cleared`, once the server has removed the key, or the error |
/// | `refresh KEY` | none: the server receives it in the background |
/// | `admit` | none: a fetch or a handler that hangs continues |
/// | `status` | `status` and the bytes of the caches' outbox, those of the events' outbox, and the unconfirmed events |
/// | `clock` | the seconds of the wall clock |
/// | `listen` | `connected`, then `got TEXT` for each note |
/// | `join MILLISECONDS` | `connected`, then `handling TEXT` and `handled TEXT` for each note of the group |
/// | `publish TEXT` | `published TEXT`, or the error |
/// | `flood COUNT` | `published` or the error for each of that many notes of 64 KiB |
/// | `load SEED` | `operations` for each 100 operations of a ``Load``, which writes a history |
/// | `rest` | `loaded`, once the operations of the load have ended |
/// | `close` | none: the process ends |
@main
struct SharedNodeProgram {
  private let engine: RedisEngine
  private let origin: Origin
  private let map: MultiplexerMap<String, String>
  private let notes: Notes
  private let load: Load

  static func main() async throws {
    let program = try SharedNodeProgram(NodeSettings(CommandLine.arguments.dropFirst()))
    for await health in program.engine.health() where health == .connected { break }
    answer("ready")
    // Reading blocks this thread: the commands are carried out on others.
    while let line = readLine() {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard let command = words.first, command != "close" else { break }
      program.run(command, words.count == 2 ? words[1] : "")
    }
    try await program.engine.close()
  }

  private init(_ settings: NodeSettings) throws {
    let folder = URL(filePath: settings.folder, directoryHint: .isDirectory)
    let origin = Origin(folder: folder, schema: settings.schema)
    let options = settings.options
    engine = try RedisEngine(settings.address, options: options)
    map = MultiplexerMap(
      id: "values",
      // Commands end first.
      policy: CachePolicy(storageTimeout: options.commandTimeout + .seconds(60)),
      cacher: engine.cacher(space: "values", schema: settings.schema)
    ) { _ in try await origin.fetch() }
    map.register()
    notes = Notes(over: engine.events, origin)
    load = Load(over: engine, in: folder)
    self.origin = origin
  }

  private func run(_ command: String, _ argument: String) {
    switch command {
    case "get": answerLater { [map] in try await map.request(argument) }
    case "clear": clear(argument)
    case "refresh": _ = map.refresh(argument)
    case "admit": origin.admit()
    case "status": answerStatus()
    case "clock": Self.answer("\(Int(Date().timeIntervalSince1970))")
    case "listen": notes.listen()
    case "join": notes.join(retryAfter: .milliseconds(Int(argument) ?? 0))
    case "publish": notes.publish(argument)
    case "load": load.begin(UInt64(argument) ?? 0)
    case "rest": load.end()
    case "flood": notes.flood(Int(argument) ?? 0)
    default: Self.answer("error: there is no command \(command)")
    }
  }

  private func clear(_ key: String) {
    answerLater { [map] in
      if key.isEmpty {
        try await MuxRepository.shared.clearAll(.everywhere)
      } else {
        try await map.clear(key)
      }
      return "cleared"
    }
  }

  private func answerStatus() {
    let status = engine.status
    let numbers = [
      status.caches.outboxBytes, status.events.outboxBytes, status.unconfirmedEvents,
    ]
    Self.answer("status \(numbers.map(\.description).joined(separator: " "))")
  }

  private func answerLater(_ work: @escaping @concurrent @Sendable () async throws -> String) {
    Task.detached {
      do {
        Self.answer(try await work())
      } catch {
        Self.answer(error)
      }
    }
  }

  /// Answers with an error and its kinds.
  static func answer(_ error: any Error) {
    var text = "error: \(error)"
    if (error as? any ConnectivityFailure)?.isConnectivityFailure == true {
      text += ", no connection"
    }
    if (error as? any OriginFailure)?.isOriginFailure == false {
      text += ", no failure of the origin"
    }
    answer(text)
  }

  static func answer(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }
}
