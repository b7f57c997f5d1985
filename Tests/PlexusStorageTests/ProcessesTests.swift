import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized)
struct `Processes that share storage` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(.guarantee(.processesShareADirectory), .startsProcess, arguments: CacherKind.allCases)
  private func `two processes that write at once lose and mix up nothing`(
    kind: CacherKind
  ) async throws {
    let path = folder.path
    async let other = #expect(processExitsWith: .success) { [kind, path = path as String] in
      let cacher = try kind.open(path)
      for round in 0..<30 {
        try await cacher.store([
          "shared": CacheEntry("theirs \(round)"), "theirs": CacheEntry("\(round)"),
          "theirs \(round)": CacheEntry("\(round)"),
        ])
        #expect(try await cacher.name("theirs") == "\(round)")
      }
    }
    let cacher = try kind.open(path)
    for round in 0..<30 {
      try await cacher.store([
        "shared": CacheEntry("ours \(round)"), "ours": CacheEntry("\(round)"),
        "ours \(round)": CacheEntry("\(round)"),
      ])
      #expect(try await cacher.name("ours") == "\(round)")
    }
    _ = await other
    for reader in [cacher, try kind.open(path)] {
      for round in 0..<30 {
        #expect(try await reader.name("ours \(round)") == "\(round)")
        #expect(try await reader.name("theirs \(round)") == "\(round)")
      }
      let shared = try await reader.name("shared")
      #expect(shared == "ours 29" || shared == "theirs 29")
    }
  }

  @Test(
    .guarantee(.clearedKeysAreNotWrittenBack),
    .startsProcess,
    arguments: CacherKind.allCases,
    [true, false]
  )
  private func `what one process has cleared is not written back by another one`(
    kind: CacherKind,
    isOneKey: Bool
  ) async throws {
    let path = folder.path
    func make() throws -> MultiplexerMap<Int, Person> {
      MultiplexerMap(id: "map", cacher: try kind.open(path)) { Person(name: "\($0)", age: $0) }
    }
    let map = try make()
    _ = try await map.request(1)
    _ = try await map.request(2)
    await #expect(processExitsWith: .success) {
      [kind, path = path as String, isOneKey = isOneKey as Bool] in
      let map = MultiplexerMap<Int, Person>(id: "map", cacher: try kind.open(path)) {
        Person(name: "\($0)", age: $0)
      }
      if isOneKey { try await map.clear(1) } else { try await map.clear() }
    }
    try await map.flush()
    let cacher = try kind.open(path)
    #expect(try await cacher.name("map/1") == nil)
    #expect(try await cacher.name("map/2") == (isOneKey ? "2" : nil))
    _ = try await map.refresh(1).request(1)
    try await map.flush()
    #expect(try await cacher.name("map/1") == "1")
  }

  /// The ways in which another process declares a value outdated.
  enum Outdating: String, CaseIterable, Codable, Sendable {
    case refresh, refreshByTag, refreshOfAll, clearByTag

    func perform(in map: MultiplexerMap<Int, Person>) async throws {
      switch self {
      case .refresh: map.refresh(1)
      case .refreshByTag: map.refresh(tags: ["tag"])
      case .refreshOfAll: map.refreshAll()
      case .clearByTag: return try await map.clear(tags: ["tag"])
      }
      // Refreshes are written behind.
      try await map.flush()
    }
  }

  @Test(
    .guarantee(.otherProcessesOutdateFetches),
    .startsProcess,
    arguments: CacherKind.allCases,
    Outdating.allCases
  )
  private func `a value whose fetch began before another process outdated it is not read as new`(
    kind: CacherKind,
    outdating: Outdating
  ) async throws {
    let (path, gate) = (folder.path, Gate())
    func make(
      _ fetch: @escaping @concurrent @Sendable (Int) async throws -> Person
    ) throws -> MultiplexerMap<Int, Person> {
      MultiplexerMap(
        id: "map",
        policy: CachePolicy(cacherRead: .beforeFetch),
        cacher: try kind.open(path),
        tagging: { _ in ["tag"] },
        onKeyFetch: fetch
      )
    }
    let map = try make { key in
      try await gate.wait()
      return Person(name: "old", age: key)
    }
    let caller = Task { try await map.request(1) }
    await gate.arrivals(1)
    await #expect(processExitsWith: .success) {
      [kind, path = path as String, outdating] in
      let map = MultiplexerMap<Int, Person>(
        id: "map",
        policy: CachePolicy(cacherRead: .beforeFetch),
        cacher: try kind.open(path),
        tagging: { _ in ["tag"] },
        onKeyFetch: { Person(name: "other", age: $0) }
      )
      try await outdating.perform(in: map)
    }
    gate.open()
    #expect(try await caller.value.name == "old")
    try await map.flush()
    await #expect(processExitsWith: .success) { [kind, path = path as String] in
      let map = MultiplexerMap<Int, Person>(
        id: "map",
        policy: CachePolicy(cacherRead: .beforeFetch),
        cacher: try kind.open(path),
        tagging: { _ in ["tag"] },
        onKeyFetch: { Person(name: "new", age: $0) }
      )
      #expect(try await map.request(1).name == "new")
      try await map.flush()
    }
    // What this process has fetched since is read as new.
    #expect(try await make { _ in throw Fetched() }.request(1).name == "new")
  }

  @Test(.guarantee(.hangingCachersAreMisses), .startsProcess, arguments: CacherKind.allCases)
  private func `a process that was stopped while it held the locks stops no other one`(
    kind: CacherKind
  ) async throws {
    let (path, notesPath) = (folder.path, folder.notesPath)
    // The map that has to give up has a clock, and thus sleepers, of its own.
    let (clock, lateClock) = (ManualClock(), ManualClock())
    func map(_ clock: ManualClock) throws -> MultiplexerMap<Int, Person> {
      MultiplexerMap(
        policy: CachePolicy(cacherRead: .beforeFetch, storageTimeout: .seconds(2)),
        cacher: try kind.open(path),
        clock: clock
      ) { Person(name: "fetched \($0)", age: $0) }
    }
    let writer = try map(clock)
    for key in 0..<3 { writer.store(Person(name: "stored \(key)", age: key), for: key) }
    try await writer.flush()
    try await writer.clear(2)
    #expect(mkfifo(notesPath, 0o600) == 0)
    async let stopped = #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, notesPath = notesPath as String] in
      let files = try FileManager.default.contentsOfDirectory(atPath: path).map { name in
        try FileHandle(forUpdating: URL(filePath: path).appending(path: name))
      }
      for file in files { #expect(flock(file.fileDescriptor, LOCK_EX) == 0) }
      let notes = try FileHandle(forWritingTo: URL(filePath: notesPath))
      try notes.write(contentsOf: Data("\(getpid())".utf8))
      try notes.close()
      withExtendedLifetime(files) { while true { pause() } }
    }
    // Opening the pipe blocks until the process has written to it.
    let text = await withCheckedContinuation { continuation in
      Thread {
        let notes = try? FileHandle(forReadingFrom: URL(filePath: notesPath)).readToEnd()
        continuation.resume(returning: String(decoding: notes ?? Data(), as: UTF8.self))
      }.start()
    }
    let process = try #require(pid_t(text))
    #expect(kill(process, SIGSTOP) == 0)

    // Reading takes no lock.
    let reader = try map(clock)
    for key in 0..<2 { #expect(try await reader.request(key).name == "stored \(key)") }
    #expect(try await reader.request(2).name == "fetched 2")
    // A write gives up after the storage timeout, and requests continue without stored copies.
    let late = try map(lateClock)
    late.store(Person(name: "late", age: 3), for: 3)
    let flushing = Task { try await late.flush() }
    await lateClock.sleepers(1)
    lateClock.advance(by: .seconds(2))
    await #expect(throws: CacherError.self) { try await flushing.value }
    #expect(try await late.request(0).name == "fetched 0", "The circuit is open")
    lateClock.advance(by: .seconds(30))
    #expect(try await late.request(1).name == "stored 1", "It is closed again")
    #expect(kill(process, SIGKILL) == 0)
    _ = await stopped
    // The value is written once the lock is free.
    while (try? await late.flush()) == nil { await Task.detached {}.value }
    #expect(try await kind.open(path).name("3") == "late")
  }

  /// A process stores and removes, records acknowledged operations, and is killed by a thread of its own at a random
  /// time.
  @Test(
    .guarantee(.crashesLeaveNoPartialEntry),
    .startsProcess,
    arguments: CacherKind.allCases,
    0..<8
  )
  private func `what was acknowledged before kill -9 is there afterwards, whole`(
    kind: CacherKind,
    round: Int
  ) async throws {
    let (path, notesPath) = (folder.path, folder.notesPath)
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [kind, path = path as String, notesPath = notesPath as String] in
      let cacher = try kind.open(path)
      try Data().write(to: URL(filePath: notesPath))
      let notes = try FileHandle(forWritingTo: URL(filePath: notesPath))
      let last = Int.random(in: 1...15)
      let filling = String(repeating: "x", count: 2_000)
      for number in 0... {
        if number == last {
          Thread {
            // A time that is independent of the other threads.
            for _ in 0..<Int.random(in: 0..<100_000) { _ = getpid() }
            kill(getpid(), SIGKILL)
          }.start()
        }
        try await cacher.store([
          "key": CacheEntry("\(number) \(filling)"), "doomed": CacheEntry("\(number) \(filling)"),
        ])
        try await cacher.removeEntries(forKeys: ["doomed"])
        try notes.write(contentsOf: Data([UInt8(ascii: ".")]))
      }
    }
    let count = try Data(contentsOf: URL(filePath: notesPath)).count
    #expect(count > 0)
    let cacher = try kind.open(path)
    let words = try #require(try await cacher.name("key")).split(separator: " ")
    let number = try #require(Int(words[0]))
    #expect(number >= count - 1 && number <= count)
    #expect(words[1].utf8.count == 2_000)
    if let doomed = try await cacher.name("doomed") {
      #expect(doomed.hasPrefix("\(count) ") && doomed.hasSuffix(words[1]))
    }
    try await cacher.store("after", for: "key")
    #expect(try await kind.open(path).name("key") == "after")
    #expect(!folder.names.contains { $0.hasSuffix(".tmp") || $0.hasSuffix(".new") })
  }
}
