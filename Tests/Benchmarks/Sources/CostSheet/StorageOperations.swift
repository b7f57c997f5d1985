import Foundation
import Plexus
import PlexusStorage

/// Operations of the cachers on disk; system calls are not counted.
let storageOperations: [Operation] = fileOperations + logOperations

private func entry(_ number: Int) -> CacheEntry<Int> {
  CacheEntry(
    value: number,
    storedAt: .seconds(1_700_000_000 + number),
    validator: nil,
    directives: CacheDirectives()
  )
}

/// Calls a closure with a folder that is removed afterwards.
func inFolder(_ body: (URL) async throws -> Void) async throws {
  let folder = FileManager.default.temporaryDirectory
    .appending(path: "plexus-costs-\(UInt64.random(in: 0 ... .max))")
  defer { try? FileManager.default.removeItem(at: folder) }
  try await body(folder)
}

private let fileOperations: [Operation] = [
  Operation("file cacher: init") { count in
    try await inFolder { folder in
      for _ in 0..<count { _ = JSONFileCacher<Int>(directory: folder) }
    }
  },
  Operation("file cacher: store an entry", count: 90) { count in
    try await inFolder { folder in
      let cacher = JSONFileCacher<Int>(directory: folder)
      for number in 0..<count { try await cacher.store(["\(number)": entry(number)]) }
    }
  },
  Operation("file cacher: entry(forKey:)", count: 90) { count in
    try await inFolder { folder in
      let cacher = JSONFileCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { use(try await cacher.entry(forKey: "1")?.value ?? 0) }
    }
  },
  Operation("file cacher: entry(forKey:), there is none", count: 90) { count in
    try await inFolder { folder in
      let cacher = JSONFileCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { use(try await cacher.entry(forKey: "2")?.value ?? 0) }
    }
  },
  Operation("file cacher: store + removeEntries", count: 90) { count in
    try await inFolder { folder in
      let cacher = JSONFileCacher<Int>(directory: folder)
      for _ in 0..<count {
        try await cacher.store(["1": entry(1)])
        try await cacher.removeEntries(forKeys: ["1"])
      }
    }
  },
  Operation("file cacher: removeAllEntries of none", count: 90) { count in
    try await inFolder { folder in
      let cacher = JSONFileCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { try await cacher.removeAllEntries() }
    }
  },
]

private let logOperations: [Operation] = [
  Operation("log cacher: init, with its file", count: 90) { count in
    try await inFolder { folder in
      for number in 0..<count {
        _ = try JSONLogCacher<Int>(directory: folder.appending(path: "\(number)"))
      }
    }
  },
  Operation("log cacher: store an entry", count: 300) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      for number in 0..<count { try await cacher.store(["\(number)": entry(number)]) }
    }
  },
  Operation("log cacher: store 100 entries, an entry", count: 300) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      for first in stride(from: 0, to: count, by: 100) {
        let entries = (first..<first + 100).map { ("\($0)", entry($0)) }
        try await cacher.store(Dictionary(uniqueKeysWithValues: entries))
      }
    }
  },
  Operation("log cacher: entry(forKey:)", count: 300) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { use(try await cacher.entry(forKey: "1")?.value ?? 0) }
    }
  },
  Operation("log cacher: entry(forKey:), there is none", count: 300) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { use(try await cacher.entry(forKey: "2")?.value ?? 0) }
    }
  },
  Operation("log cacher: store + removeEntries", count: 300) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      for _ in 0..<count {
        try await cacher.store(["1": entry(1)])
        try await cacher.removeEntries(forKeys: ["1"])
      }
    }
  },
  Operation("log cacher: removeAllEntries of none", count: 90) { count in
    try await inFolder { folder in
      let cacher = try JSONLogCacher<Int>(directory: folder)
      try await cacher.store(["1": entry(1)])
      for _ in 0..<count { try await cacher.removeAllEntries() }
    }
  },
]
