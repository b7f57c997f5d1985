import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .serialized)
struct `The files of a cacher` {
  /// A disk of a busy machine can stand still for some seconds.
  private static let patient = CachePolicy(storageTimeout: .seconds(60))

  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Whether a file or the name of a file contains a text.
  ///
  /// - Parameter text: A text with letters that no number in hexadecimal digits has, as names of files do.
  private func contain(_ text: String) throws -> Bool {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    return try names.contains { name in
      let content = try Data(contentsOf: URL(filePath: folder.path).appending(path: name))
      return name.contains(text) || content.range(of: Data(text.utf8)) != nil
    }
  }

  private func map(
    _ kind: CacherKind,
    _ id: String?,
    apart: Bool = false
  ) throws -> MultiplexerMap<String, Person> {
    let cacher = try apart ? kind.openApart(folder.path) : kind.open(folder.path)
    return MultiplexerMap(id: id, policy: Self.patient, cacher: cacher) {
      Person(name: "name of \($0)")
    }
  }

  @Test(.guarantee(.clearsLeaveNoBytes), arguments: CacherKind.allCases, [false, true])
  private func `the files of a cacher have nothing of the user after everything was cleared`(
    kind: CacherKind,
    apart: Bool
  ) async throws {
    let repository = MuxRepository()
    let maps = [try map(kind, nil), try map(kind, "a", apart: apart), try map(kind, "b")]
    let profile = Multiplexer<Person>(
      id: "profile",
      policy: Self.patient,
      cacher: try kind.open(folder.path)
    ) {
      Person(name: "name of olga")
    }
    for map in maps { map.register(in: repository) }
    profile.register(in: repository)
    for round in 0..<3 {
      for map in maps {
        map.store(Person(name: "name of olga \(round)"), for: "olga")
        try await map.flush()
      }
      _ = try await profile.refresh().request()
      try await profile.flush()
    }
    #expect(try contain("name of olga"))
    try await repository.clearAll()
    #expect(try !contain("olga"))
  }

  @Test(arguments: CacherKind.allCases, [nil, "a"] as [String?])
  private func `files have nothing of a map that was cleared, and all of the others`(
    kind: CacherKind,
    id: String?
  ) async throws {
    let map = try map(kind, "map")
    let other = try self.map(kind, "other")
    for map in [map, other] {
      _ = try await map.request(map === other ? "grace" : "olga")
      try await map.flush()
    }
    try await map.clear()
    #expect(try !contain("olga"))
    #expect(try contain("name of grace"))
    let profile = Multiplexer<Person>(id: "me", cacher: try kind.open(folder.path)) {
      Person(name: "name of olga")
    }
    _ = try await profile.request()
    try await profile.flush()
    try await profile.clear()
    #expect(try !contain("olga"))
    #expect(try contain("name of grace"))
  }

  @Test(arguments: CacherKind.allCases)
  private func `the files of a cacher have nothing of cleared single keys after the next flush`(
    kind: CacherKind
  ) async throws {
    let map = try map(kind, "map")
    for key in ["olga", "grace"] { _ = try await map.request(key) }
    try await map.flush()
    try await map.clear("olga")
    try await map.flush()
    #expect(try !contain("olga"))
    #expect(try contain("name of grace"))
  }

  @Test(arguments: CacherKind.allCases)
  private func `files have nothing of entries that were removed by their prefix`(
    kind: CacherKind
  ) async throws {
    let cacher = try kind.open(folder.path)
    try await cacher.store("name of olga", for: "a/olga")
    try await cacher.store("name of grace", for: "b/grace")
    try await cacher.removeEntries(withPrefix: "a/")
    #expect(try !contain("olga"))
    #expect(try contain("name of grace"))
  }

  @Test
  private func `the files of a cacher have nothing of what a killed process was about to write`()
    async throws
  {
    for kind in CacherKind.allCases {
      let map = try map(kind, "map")
      _ = try await map.request("olga")
      try await map.flush()
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      let url = URL(filePath: folder.path)
      if kind == .log {
        let name = try #require(names.first { $0.hasSuffix(".log") })
        try Data("name of olga".utf8).write(to: url.appending(path: name + ".new"))
      } else {
        let name = try #require(names.first { $0.hasSuffix(".json") })
        let tag = name.split(separator: ".").first ?? ""
        try Data("name of olga".utf8).write(to: url.appending(path: "\(tag).ff.tmp"))
      }
      try await map.clear()
      #expect(try !contain("olga"))
    }
  }
}

@Suite(.fewAtOnce, .serialized)
struct `A folder that vanishes` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  private var path: String { folder.path + "/sub/cache" }

  private func map(_ kind: CacherKind) throws -> MultiplexerMap<String, Person> {
    MultiplexerMap(id: "map", cacher: try kind.open(path)) { Person(name: "name of \($0)") }
  }

  private func stored(_ kind: CacherKind, _ key: String) async throws -> Bool {
    try await kind.open(path).entry(forKey: "map/" + key) != nil
  }

  @Test(.guarantee(.removedFoldersAreCreatedAgain), arguments: CacherKind.allCases)
  private func `a folder that vanishes is made again for values that were fetched before`(
    kind: CacherKind
  ) async throws {
    let map = try map(kind)
    // The folder has a history.
    _ = try await map.request("0")
    try await map.flush()
    try await map.clear("0")
    _ = try await map.request("olga")
    try FileManager.default.removeItem(atPath: folder.path + "/sub")
    try await map.flush()
    #expect(try await stored(kind, "olga"))
    // Again, between two writes.
    _ = try await map.request("grace")
    try FileManager.default.removeItem(atPath: folder.path + "/sub")
    map.store(Person(name: "linus"), for: "linus")
    try await map.flush()
    #expect(try await stored(kind, "grace"))
    #expect(try await stored(kind, "linus"))
  }

  @Test(.guarantee(.removedFoldersAreCreatedAgain), arguments: CacherKind.allCases)
  private func `a folder that vanishes brings back nothing that was removed before`(
    kind: CacherKind
  ) async throws {
    let (map, other) = (try map(kind), try map(kind))
    try await other.clear("0")
    for key in ["olga", "grace"] { _ = try await map.request(key) }
    try await other.clear("olga")
    try FileManager.default.removeItem(atPath: folder.path + "/sub")
    try await map.flush()
    #expect(try await !stored(kind, "olga"))
    #expect(try await stored(kind, "grace"))
  }

  @Test(.guarantee(.removedFoldersAreCreatedAgain), arguments: CacherKind.allCases)
  private func `a folder that vanishes and is replaced by a file is an error that names it`(
    kind: CacherKind
  ) async throws {
    let map = try map(kind)
    _ = try await map.request("olga")
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(
      atPath: folder.path + "/sub",
      withIntermediateDirectories: true
    )
    try Data().write(to: URL(filePath: path))
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    guard case .system(_, let failed, let code)? = error.failures["map/olga"] as? StorageError
    else {
      Issue.record("\(error)")
      return
    }
    #expect(failed.contains("/sub/cache"))
    #expect(code == ENOTDIR)
    try FileManager.default.removeItem(atPath: path)
    try await map.flush()
    #expect(try await stored(kind, "olga"))
  }
}
