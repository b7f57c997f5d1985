import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

private struct Offline: ConnectivityFailure {
  var isConnectivityFailure: Bool { true }
}

/// Two maps with one folder, in one process or in two.
@Suite(.fewAtOnce, .serialized)
struct `A value whose fetch began before a command of another instance` {
  enum Command: CaseIterable, Sendable {
    case clearTags, refreshTags, refreshKey, refreshAll

    func run(_ map: MultiplexerMap<Int, Person>) async throws {
      switch self {
      case .clearTags: try await map.clear(tags: ["all"])
      case .refreshTags: map.refresh(tags: ["all"])
      case .refreshKey: map.refresh(1)
      case .refreshAll: map.refreshAll()
      }
      // Marks are written behind.
      try await map.flush()
    }
  }

  private let folder: TemporaryFolder
  init() throws {
    folder = try TemporaryFolder()
  }

  private func map(
    _ kind: CacherKind,
    apart: Bool,
    id: String? = "m",
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Person
  ) throws -> MultiplexerMap<Int, Person> {
    MultiplexerMap(
      id: id,
      policy: CachePolicy(cacherRead: .beforeFetch),
      cacher: try apart ? kind.openApart(folder.path) : kind.open(folder.path),
      tagging: { _ in ["all"] },
      clock: ManualClock(),
      onKeyFetch: fetch
    )
  }

  @Test(
    .guarantee(.clearsByTagOutdateOtherInstances),
    arguments: CacherKind.allCases,
    [false, true]
  )
  private func `a value whose fetch began before a command of another instance is not read as new`(
    kind: CacherKind,
    apart: Bool
  ) async throws {
    for command in Command.allCases {
      for id in [nil, "m"] as [String?] {
        let first = try map(kind, apart: apart, id: id) { _ in Person(name: "new") }
        // It has a history of its own.
        try await first.clear(7)
        first.refresh(7)
        let (gate, entered) = (Gate(), Gate())
        entered.open()
        let second = MultiplexerMap<Int, Person>.bulk(
          id: id,
          cacher: try apart ? kind.openApart(folder.path) : kind.open(folder.path),
          keyName: { "\($0)" },
          tagging: { _ in ["all"] },
          clock: ManualClock(),
          onFetch: { (keys: [Int]) -> [Int: Person] in
            try await entered.wait()
            try await gate.wait()
            return Dictionary(uniqueKeysWithValues: keys.map { ($0, Person(name: "old")) })
          }
        )
        let caller = Task { try await second.request(1) }
        await entered.arrivals(1)
        try await command.run(first)
        gate.open()
        #expect(try await caller.value.name == "old")
        try await second.flush()
        #expect(try await first.request(1).name == "new", "\(command) \(id ?? "")")
        let third = try map(kind, apart: apart, id: id) { _ in Person(name: "newer") }
        #expect(try await third.request(1).name == "newer", "\(command) \(id ?? "")")
        // What is fetched afterwards is written, and read.
        try await first.flush()
        let fourth = try map(kind, apart: apart, id: id) { _ in throw Fetched() }
        #expect(try await fourth.request(1).name == "new", "\(command) \(id ?? "")")
        try await first.clear()
      }
    }
  }

  @Test(.guarantee(.updatesKeepTheAge), arguments: CacherKind.allCases, Command.allCases)
  private func `an old value is not read as new after an update, which keeps its age`(
    kind: CacherKind,
    command: Command
  ) async throws {
    let first = try map(kind, apart: true) { _ in Person(name: "new") }
    let second = try map(kind, apart: true) { _ in Person(name: "old") }
    _ = try await second.request(1)
    try await second.flush()
    try await command.run(first)
    second.update(1) { $0.age = 1 }
    try await second.flush()
    #expect(try await first.request(1).name == "new")
  }

  @Test(.guarantee(.ageCountsFromTheAttempt), arguments: CacherKind.allCases)
  private func `a value is new if its attempt began after a clear of another instance`(
    kind: CacherKind
  ) async throws {
    let first = try map(kind, apart: true) { _ in Person(name: "new") }
    let clock = ManualClock()
    let policy = CachePolicy(
      retry: .exponential(attempts: 2, base: .seconds(5), cap: .seconds(5), jitter: 0)
    )
    let second = MultiplexerMap<Int, Person>(
      id: "m",
      policy: policy,
      cacher: try kind.openApart(folder.path),
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { (_: Int, context: FetchContext<Person>) in
        guard context.attempt == 2 else { throw Fetched() }
        return .value(Person(name: "second"))
      }
    )
    let caller = Task { try await second.request(1) }
    await clock.sleepers(1)
    try await first.clear(tags: ["all"])
    clock.advance(by: .seconds(5))
    _ = try await caller.value
    try await second.flush()
    #expect(try await first.request(1).name == "second")
  }

  @Test(.guarantee(.refreshesDoNotPreventWriting), arguments: CacherKind.allCases)
  private func `a value is written, although another instance has refreshed many others`(
    kind: CacherKind
  ) async throws {
    let first = try map(kind, apart: true) { _ in throw Fetched() }
    let second = try map(kind, apart: true) { _ in Person(name: "old") }
    _ = try await second.request(1)
    for part in 0..<5 {
      first.refresh(Array(1_000 * part + 2..<1_000 * part + 900))
      try await first.flush()
    }
    try await second.flush()
    // Many marks are replaced by one of everything: the value can be outdated, and is still there.
    let offline = MultiplexerMap<Int, Person>(
      id: "m",
      cacher: try kind.openApart(folder.path)
    ) { _ in throw Offline() }
    #expect(try await offline.request(1).name == "old")
  }

  @Test(arguments: CacherKind.allCases)
  private func `a value stays cleared by tag after a restart and a damaged record`(
    kind: CacherKind
  ) async throws {
    let second = try map(kind, apart: true) { _ in Person(name: "old") }
    _ = try await second.request(1)
    try await second.flush()
    let first = try map(kind, apart: true) { _ in Person(name: "new") }
    try await first.clear(tags: ["all"])
    let third = try map(kind, apart: true) { _ in throw Fetched() }
    await #expect(throws: Fetched.self) { try await third.request(1) }
    second.store(Person(name: "kept"), for: 1)
    try await second.flush()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let name = try #require(names.first { $0.hasSuffix(".removals") })
    let url = URL(filePath: folder.path).appending(path: name)
    var bytes = try Data(contentsOf: url)
    bytes[3] ^= 1
    try bytes.write(to: url)
    let fourth = try map(kind, apart: true) { _ in throw Fetched() }
    await #expect(throws: Fetched.self) { try await fourth.request(1) }
  }
}
