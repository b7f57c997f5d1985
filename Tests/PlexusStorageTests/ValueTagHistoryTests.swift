import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

private struct Offline: ConnectivityFailure {
  var isConnectivityFailure: Bool { true }
}

/// Histories of a map whose values have tags and are stored, against what a user of the map believes.
@Suite(.fewAtOnce) struct `Any history of stored values with tags` {
  private struct World {
    /// The present values, and whether they have changed at their origin.
    struct Known {
      var person: Person
      var isOutdated = false
    }

    var known: [String: Known] = [:]
    /// The keys whose values are in memory.
    var inMemory: Set<String> = []
    var count = 0
    var history: [String] = []

    /// Returns a value that has not been there before, with one of three tags.
    mutating func person(_ age: Int) -> Person {
      count += 1
      return Person(name: "\(count)", age: age)
    }
  }

  private let origin = Guarded<Person?>(nil)

  private func map(_ cacher: any Cacher<Person>) -> MultiplexerMap<String, Person> {
    taggedPeople(cacher) { [origin] _ in
      guard let person = origin.withLock({ $0 }) else { throw Offline() }
      return person
    }
  }

  private static func tag(_ age: Int) -> CacheTag { CacheTag("age:\(age)") }

  @Test(arguments: CacherKind.allCases, 0..<20 as Range<UInt64>)
  func `any history of tags, updates and restarts answers as a simple model does`(
    kind: CacherKind,
    seed: UInt64
  ) async throws {
    let folder = try TemporaryFolder()
    var random = SeededRandom(seed: seed)
    var world = World()
    var map = map(try kind.open(folder.path))
    for _ in 0..<80 {
      let key = "\(Int.random(in: 0..<2, using: &random))"
      let age = Int.random(in: 0..<3, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<2: store(key, age, &world, map)
      case 2..<6: try await update(key, age, &world, map, &random)
      case 6..<9:
        world.history.append("clear tag \(age)")
        world.known = world.known.filter { $0.value.person.age != age }
        try await map.clear(tags: [Self.tag(age)])
      case 9..<11:
        world.history.append("refresh tag \(age)")
        for (key, known) in world.known where known.person.age == age {
          world.known[key]?.isOutdated = true
        }
        map.refresh(tags: [Self.tag(age)])
      case 11:
        world.history.append("refresh key \(key)")
        world.known[key]?.isOutdated = true
        map.refresh(key)
      case 12..<15:
        world.history.append("flush")
        try await map.flush()
      case 15..<17:
        world.history.append("clear memory")
        world.inMemory = []
        map.clearMemory()
      case 17:
        world.history.append("restart")
        try await map.flush()
        world.inMemory = []
        map = self.map(try kind.openApart(folder.path))
      default:
        let isOnline = Bool.random(using: &random)
        try await request(key, isOnline ? age : nil, &world, map)
      }
    }
    for key in ["0", "1"] { try await request(key, nil, &world, map) }
  }

  private func store(
    _ key: String,
    _ age: Int,
    _ world: inout World,
    _ map: MultiplexerMap<String, Person>
  ) {
    world.history.append("store \(key) \(age)")
    let person = world.person(age)
    world.known[key] = World.Known(person: person)
    world.inMemory.insert(key)
    map.store(person, for: key)
  }

  private func update(
    _ key: String,
    _ age: Int,
    _ world: inout World,
    _ map: MultiplexerMap<String, Person>,
    _ random: inout SeededRandom
  ) async throws {
    // Only values in memory are updated.
    guard world.inMemory.contains(key), let known = world.known[key] else { return }
    let person = world.person(age)
    switch Int.random(in: 0..<3, using: &random) {
    case 0:
      world.history.append("update \(key) \(age)")
      map.update(key) { $0 = person }
    case 1:
      world.history.append("commit \(key) \(age)")
      try await map.update(key, optimistically: { $0 = person }, commit: {})
    default:
      world.history.append("revert \(key) \(age)")
      try? await map.update(key, optimistically: { $0 = person }, commit: { throw Fetched() })
      return
    }
    world.known[key] = World.Known(person: person, isOutdated: known.isOutdated)
  }

  /// - Parameter age: The tag of the value that the origin returns; `nil` if the device is offline.
  private func request(
    _ key: String,
    _ age: Int?,
    _ world: inout World,
    _ map: MultiplexerMap<String, Person>
  ) async throws {
    world.history.append("request \(key) \(age.map { "\($0)" } ?? "offline")")
    let fetched = age.map { world.person($0) }
    origin.withLock { $0 = fetched }
    let response = try? await map.response(key)
    let history = "\(response.map { "\($0)" } ?? "nothing") after \(world.history)"
    switch (world.known[key], fetched) {
    case (let known?, _) where !known.isOutdated:
      try #require(response?.value == known.person && response?.error == nil, "\(history)")
    case (_, let fetched?):
      try #require(response?.value == fetched, "\(history)")
      world.known[key] = World.Known(person: fetched)
    case (let known?, nil):
      try #require(response?.value == known.person, "\(history)")
      try #require(response?.error is Offline, "\(history)")
    case (nil, nil):
      try #require(response == nil, "\(history)")
      return
    }
    world.inMemory.insert(key)
  }
}
