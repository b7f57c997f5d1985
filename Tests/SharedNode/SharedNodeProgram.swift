import Foundation
import Plexus
import PlexusRedis

/// A process with a map over a Redis server, which carries out the commands of its standard input.
///
/// Each fetch adds a line to the file `fetches` of a folder and returns the content of the file `origin`. While there is
/// a file `hold`, it reports itself and never ends.
///
/// | Command | Answer |
/// |---|---|
/// | `get KEY` | the value, or the error |
/// | `clear` | `cleared`, once no process uses older values |
/// | `listen` | `connected`, then `got TEXT` for each note |
/// | `join MILLISECONDS` | `connected`, then `handling TEXT` and `handled TEXT` for each note of the group |
/// | `publish TEXT` | `published TEXT`, or the error |
/// | `close` | none: the process ends |
///
/// While there is a file `hold`, handlers of notes of a group hang as fetches do.
@main
struct SharedNodeProgram {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 5, let nearLease = Int64(arguments[3]),
      let fetchLease = Int64(arguments[4])
    else { exit(64) }
    let folder = URL(filePath: arguments[2], directoryHint: .isDirectory)
    var options = RedisOptions()
    options.nearLease = .milliseconds(nearLease)
    options.fetchLease = .milliseconds(fetchLease)
    let engine = try RedisEngine(.unix(path: arguments[1]), options: options)
    let map = MultiplexerMap<String, String>(
      id: "values",
      cacher: engine.cacher(space: "values", schema: "1")
    ) { _ in
      try append(
        "\(ProcessInfo.processInfo.processIdentifier)\n",
        to: folder.appending(path: "fetches")
      )
      if FileManager.default.fileExists(atPath: folder.appending(path: "hold").path) {
        answer("fetching")
        await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      }
      return try String(contentsOf: folder.appending(path: "origin"), encoding: .utf8)
    }
    map.register()
    let notes = Notes(over: engine.events, folder)
    for await health in engine.health() where health == .connected { break }
    answer("ready")
    // Reading blocks this thread: the commands are carried out on others.
    while let line = readLine() {
      let words = line.split(separator: " ", maxSplits: 1)
      switch words.first {
      case "get":
        let key = String(words.last ?? "")
        Task.detached {
          do {
            answer(try await map.request(key))
          } catch {
            answer("error: \(error)")
          }
        }
      case "clear":
        Task.detached {
          do {
            try await MuxRepository.shared.clearAll(.everywhere)
            answer("cleared")
          } catch {
            answer("error: \(error)")
          }
        }
      case "listen":
        notes.listen()
      case "join":
        notes.join(retryAfter: .milliseconds(Int(words.last ?? "") ?? 0))
      case "publish":
        notes.publish(String(words.last ?? ""))
      default:
        await engine.close()
        return
      }
    }
    await engine.close()
  }

  static func answer(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }

  private static func append(_ text: String, to file: URL) throws {
    let handle = try FileHandle(forWritingTo: file)
    defer { try? handle.close() }
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(text.utf8))
  }
}
