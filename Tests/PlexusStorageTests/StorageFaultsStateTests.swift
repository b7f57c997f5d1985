import Plexus
import TestSupport
import Testing

@testable import PlexusStorage

/// A cacher on a simulated disk, and the origin of its entries.
private enum Subject: CaseIterable, Sendable {
  case files
  case filesWithLimit
  case log
  /// Its next store exceeds the limit, so the file is replaced.
  case logWithLimit
  /// The file is replaced after the next store or removal, because more than half of it is obsolete.
  case logNearCompaction

  func open(_ disk: SimulatedDisk) throws -> any Cacher<Person> {
    let path = "/home/user/.cache/app"
    switch self {
    case .files, .filesWithLimit:
      let limit = self == .files ? nil : 10_000
      return JSONFileCacher<Person>(path: path, byteLimit: limit, schema: nil, fileSystem: disk)
    case .log, .logWithLimit, .logNearCompaction:
      let limit = self == .logWithLimit ? 320 : nil
      return try JSONLogCacher<Person>(path: path, byteLimit: limit, schema: nil, fileSystem: disk)
    }
  }

  /// A disk with two entries.
  func filledDisk() async throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    let cacher = try open(disk)
    if self == .logNearCompaction {
      try await cacher.store(String(repeating: "x", count: 3700), for: "junk")
      try await cacher.removeEntries(forKeys: ["junk"])
    }
    try await cacher.store(["a": CacheEntry("old a"), "b": CacheEntry("old b")])
    return disk
  }
}

private enum Trouble: CaseIterable, Sendable {
  case stops, fails

  func at(_ call: Int) -> SimulatedDisk.Trouble {
    switch self {
    case .stops: .stops(at: call)
    case .fails: .fails(at: call, code: 5)
    }
  }
}

@Suite(.fewAtOnce) struct `Storage on a failing disk` {
  /// The claim of an operation about the keys that it was given.
  enum Claim: Equatable {
    case done
    case failed(Set<String>)
    case failedAltogether

    func mayHaveFailed(_ key: String) -> Bool {
      switch self {
      case .done: false
      case .failed(let keys): keys.contains(key)
      case .failedAltogether: true
      }
    }
  }

  /// Runs an operation with a fault at its first call, its second, and so on, until it has no more calls.
  private func forEveryCall(
    _ trouble: Trouble,
    _ subject: Subject,
    isEmpty: Bool = false,
    do operation: (any Cacher<Person>) async throws -> Void,
    check: (any Cacher<Person>, Claim, _ call: String) async throws -> Void
  ) async throws {
    for survival in SimulatedDisk.Survival.allCases {
      var number = 0
      var isOver = false
      while !isOver {
        number += 1
        let disk = isEmpty ? SimulatedDisk() : try await subject.filledDisk()
        disk.prepare(trouble.at(number))
        var claim = Claim.done
        do {
          try await operation(subject.open(disk))
        } catch let error as CacherError {
          claim = .failed(error.keys)
        } catch {
          claim = .failedAltogether
        }
        isOver = disk.callCount < number
        #expect(disk.openCount == 0, "left open after trouble at call \(number)")
        disk.crash(survival)
        try await check(subject.open(disk), claim, "\(trouble) at call \(number), \(survival) kept")

        let reopened = try subject.open(disk)
        try await reopened.store("again", for: "a")
        #expect(try await reopened.name("a") == "again")
        #expect(!disk.paths.contains { $0.hasSuffix(".new") || $0.hasSuffix(".tmp") })
      }
      #expect(number > 3)
    }
  }

  @Test(.guarantee(.crashesLeaveNoPartialEntry), arguments: Trouble.allCases, Subject.allCases)
  private func `a store that fails or stops at any call leaves each entry old or new, whole`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject) { cacher in
      try await cacher.store(["a": CacheEntry("new a"), "c": CacheEntry("new c")])
    } check: { cacher, claim, call in
      #expect(try await cacher.name("b") == "old b", "\(call)")
      let first = try await cacher.name("a")
      #expect(first == "new a" || claim.mayHaveFailed("a") && first == "old a", "\(call)")
      let third = try await cacher.name("c")
      #expect(third == "new c" || claim.mayHaveFailed("c") && third == nil, "\(call)")
    }
  }

  @Test(arguments: Trouble.allCases, Subject.allCases)
  private func `the first store makes its folders durable, too`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject, isEmpty: true) { cacher in
      try await cacher.store("new", for: "a")
    } check: { cacher, claim, call in
      let name = try await cacher.name("a")
      #expect(name == "new" || claim != .done && name == nil, "\(call)")
    }
  }

  @Test(.guarantee(.removalsAreDurable), arguments: Trouble.allCases, Subject.allCases)
  private func `a removal is durable when it returns, and names entries that may remain`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject) { cacher in
      try await cacher.removeEntries(forKeys: ["a", "absent"])
    } check: { cacher, claim, call in
      let name = try await cacher.name("a")
      #expect(name == nil || claim.mayHaveFailed("a") && name == "old a", "\(call)")
      #expect(try await cacher.name("b") == "old b", "\(call)")
    }
  }

  @Test(.guarantee(.removalsAreDurable), arguments: Trouble.allCases, Subject.allCases)
  private func `removing everything is durable when it returns`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject) { cacher in
      try await cacher.removeAllEntries()
    } check: { cacher, claim, call in
      for key in ["a", "b"] {
        let name = try await cacher.name(key)
        #expect(name == nil || claim != .done && name == "old \(key)", "\(call)")
      }
    }
  }

  @Test(arguments: Trouble.allCases, Subject.allCases)
  private func `a removal that failed can be repeated`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject) { cacher in
      do {
        try await cacher.removeEntries(forKeys: ["a"])
      } catch {
        try await cacher.removeEntries(forKeys: ["a"])
      }
    } check: { cacher, claim, call in
      let name = try await cacher.name("a")
      #expect(name == nil || claim.mayHaveFailed("a"), "\(call)")
    }
  }

  @Test(arguments: Trouble.allCases, Subject.allCases)
  private func `reading harms nothing, however it fails`(
    trouble: Trouble,
    subject: Subject
  ) async throws {
    try await forEveryCall(trouble, subject) { cacher in
      let names = (try await cacher.name("a"), try await cacher.name("absent"))
      #expect(names == ("old a", nil))
    } check: { cacher, _, call in
      let names = (try await cacher.name("a"), try await cacher.name("b"))
      #expect(names == ("old a", "old b"), "\(call)")
    }
  }

  @Test(arguments: Subject.allCases)
  private func `after a failure the same instance continues with the existing content`(
    subject: Subject
  ) async throws {
    for number in 1..<40 {
      let disk = try await subject.filledDisk()
      let cacher = try subject.open(disk)
      disk.prepare(.fails(at: number, code: 28))
      var claim = Claim.done
      do {
        try await cacher.store("new a", for: "a")
      } catch {
        claim = .failed(["a"])
      }
      disk.prepare(nil)
      let name = try await cacher.name("a")
      #expect(name == "new a" || claim != .done && name == "old a", "call \(number)")
      #expect(try await subject.open(disk).name("a") == name, "call \(number)")
      #expect(try await cacher.name("b") == "old b", "call \(number)")
    }
  }
}
