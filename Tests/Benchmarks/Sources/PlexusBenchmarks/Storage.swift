import Foundation
import Plexus
import PlexusStorage

/// Rows for storing many small entries at once.
func storageComparisons() -> [Comparison] {
  [
    storing(peer: "JSONFileCacher") { entries, folder in
      try await JSONFileCacher<Profile>(directory: folder).store(entries)
    },
    storing(peer: "Data.write(.atomic)") { entries, folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let encoder = JSONEncoder()
      for (key, entry) in entries {
        try encoder.encode(entry.value).write(to: folder.appending(path: key), options: .atomic)
      }
    },
  ]
}

private let entryCount = 1_000

/// About 300 bytes of JSON.
private struct Profile: Codable, Sendable {
  var id: Int
  var name: String
  var isActive: Bool
  var score: Double
  var biography: String

  init(_ number: Int) {
    id = number
    name = "User number \(number)"
    isActive = number.isMultiple(of: 2)
    score = Double(number) / 7
    biography = String(repeating: "words and ", count: 20)
  }
}

/// A row for storing entries: the log is synchronized once for all of them, separate files once for each.
///
/// The peer `Data.write(.atomic)` does not guarantee durability.
private func storing(
  peer: String,
  _ store: @escaping @Sendable ([String: CacheEntry<Profile>], URL) async throws -> Void
) -> Comparison {
  var entries: [String: CacheEntry<Profile>] = [:]
  for number in 0..<entryCount {
    entries["user-\(number)"] = CacheEntry(
      value: Profile(number),
      storedAt: .seconds(1_700_000_000 + number),
      validator: nil
    )
  }
  let all = entries
  return Comparison(
    name: "storage/1000 x 300 B/\(peer.prefix(4))",
    peer: "a file each, \(peer)",
    goal: 25,
    ours: {
      try await inFolder { folder in
        try await nanoseconds(per: entryCount) {
          try await JSONLogCacher<Profile>(directory: folder).store(all)
        }
      }
    },
    theirs: {
      try await inFolder { folder in
        try await nanoseconds(per: entryCount) { try await store(all, folder) }
      }
    }
  )
}

/// Runs a body with a new folder on the disk of the user's caches.
private func inFolder(_ body: (URL) async throws -> Double) async throws -> Double {
  let caches = try FileManager.default.url(
    for: .cachesDirectory,
    in: .userDomainMask,
    appropriateFor: nil,
    create: true
  )
  let root = caches.appending(path: "plexus-benchmark-\(UInt64.random(in: 0 ... .max))")
  defer { try? FileManager.default.removeItem(at: root) }
  return try await body(root)
}
