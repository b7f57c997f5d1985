import Foundation
import Plexus
import PlexusRedis
import PlexusTesting

/// Requests, writes and clears in a random order, which write a history: the file `history` of the folder.
///
/// The origin of a key is a file, whose length is the version of its value: a write appends a byte. A value consists of
/// its key, its version and the time at which its fetch began. The key `3.1` has the tag `3`.
///
/// | Line of the history | Content after the process and the times of begin and end |
/// |---|---|
/// | `get` | the key, and the value or an error |
/// | `clear` | the reach, and the key, the tag or nothing for everything |
///
/// All times are those of the monotonic clock, which the processes of a machine share. A clear that fails has no line.
struct Load: Sendable {
  private static let callerCount = 4

  /// The operations so far, which it reports.
  private actor Progress {
    private var isEnding = false
    private var operations = 0
    private var callers = Load.callerCount

    func end() {
      isEnding = true
    }

    /// Counts an operation of a caller.
    ///
    /// - Returns: Whether the caller continues.
    func continues() -> Bool {
      operations += 1
      if operations.isMultiple(of: 100) { SharedNodeProgram.answer("operations") }
      guard isEnding else { return true }
      callers -= 1
      if callers == 0 { SharedNodeProgram.answer("loaded") }
      return false
    }
  }

  let engine: RedisEngine
  let folder: URL
  private let progress = Progress()

  init(over engine: RedisEngine, in folder: URL) {
    (self.engine, self.folder) = (engine, folder)
  }

  /// Begins the operations of a number of concurrent callers.
  func begin(_ seed: UInt64) {
    let operations = LoadOperations(over: engine, in: folder)
    // The rate of the load, which leaves time for the server.
    let rate = Gate()
    Thread.detachNewThread {
      while true {
        poll(nil, 0, 1)
        rate.admit(Self.callerCount)
      }
    }
    for caller in 0..<Self.callerCount {
      Task.detached { [progress] in
        var random = SeededNumbers(state: seed &* 1_000 &+ UInt64(caller))
        repeat {
          await operations.perform(&random)
          try? await rate.wait()
        } while await progress.continues()
      }
    }
  }

  /// Ends the operations, and answers `loaded` after the last one.
  func end() {
    Task.detached { [progress] in await progress.end() }
  }
}

/// The operations of a load, over a map of its own.
private struct LoadOperations: Sendable {
  private let folder: URL
  private let map: MultiplexerMap<String, String>
  private let repository = MuxRepository()
  private let history: FileHandle

  init(over engine: RedisEngine, in folder: URL) {
    self.folder = folder
    history = FileHandle(
      fileDescriptor: Self.open(folder.appending(path: "history")),
      closeOnDealloc: true
    )
    map = MultiplexerMap(
      id: "load",
      cacher: engine.cacher(space: "load", schema: "1"),
      tagging: { [CacheTag(String($0.prefix(1)))] },
      onKeyFetch: { key in
        let begin = Self.now
        var origin = stat()
        let isWritten = stat(folder.appending(path: key).path, &origin) == 0
        return "\(key) \(isWritten ? origin.st_size : 0) \(begin)"
      }
    )
    map.register(in: repository)
  }

  /// Performs one operation: each hundredth one is a clear.
  func perform(_ random: inout SeededNumbers) async {
    let tag = "\(random.next(below: 4))"
    let key = "\(tag).\(random.next(below: 4))"
    switch random.next(below: 1_000) {
    case ..<3: await clear("shared", key) { try await map.clear(key) }
    case ..<5: await clear("shared", tag) { try await map.clear(tags: [CacheTag(tag)]) }
    case ..<7:
      await clear("everywhere", tag) {
        try await repository.clear(tags: [CacheTag(tag)], .everywhere)
      }
    case ..<10: await clear("everywhere", "") { try await repository.clearAll(.everywhere) }
    case ..<15: _ = map.refresh(key)
    case ..<100:
      let origin = Self.open(folder.appending(path: key))
      _ = write(origin, [0 as UInt8], 1)
      close(origin)
    default:
      let begin = Self.now
      do {
        note("get", begin, key, try await map.request(key))
      } catch {
        note("get", begin, key, "\(error)")
      }
    }
  }

  private func clear(
    _ reach: String,
    _ subject: String,
    _ operation: () async throws -> Void
  ) async {
    let begin = Self.now
    guard (try? await operation()) != nil else { return }
    note("clear", begin, reach, subject)
  }

  /// Writes a line by one call, so that the lines of processes do not mix.
  private func note(_ kind: String, _ begin: UInt64, _ subject: String, _ result: String) {
    let process = ProcessInfo.processInfo.processIdentifier
    let line = "\(kind) \(process) \(begin) \(Self.now) \(subject) \(result)\n"
    try? history.write(contentsOf: Data(line.utf8))
  }

  /// Opens a file to which bytes are appended.
  private static func open(_ file: URL) -> Int32 {
    Foundation.open(file.path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
  }

  private static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// A small generator whose sequence depends on its seed only.
private struct SeededNumbers {
  var state: UInt64

  mutating func next(below limit: UInt64) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((mixed ^ (mixed >> 31)) % limit)
  }
}
