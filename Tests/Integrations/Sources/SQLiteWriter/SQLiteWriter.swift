import Foundation
import Plexus

/// Stores entries until it is killed, and prints the number of each batch that is durable.
///
/// Usage: `SQLiteWriter PATH BATCHES`. Each batch has ten entries, `batch/0` to `batch/9`.
@main
struct SQLiteWriter {
  static func main() async throws {
    let arguments = CommandLine.arguments
    let cacher = try SQLiteCacher<String>(path: arguments[1], schema: "1")
    for batch in 0..<(Int(arguments[2]) ?? 0) {
      var entries: [String: CacheEntry<String>] = [:]
      for number in 0..<10 {
        entries["\(batch)/\(number)"] = CacheEntry(
          value: "value of \(batch)",
          storedAt: .seconds(batch)
        )
      }
      try await cacher.store(entries)
      FileHandle.standardOutput.write(Data("\(batch)\n".utf8))
    }
  }
}
