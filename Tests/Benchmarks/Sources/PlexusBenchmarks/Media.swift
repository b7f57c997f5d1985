import BenchmarkOrigin
import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Rows for downloads and cached files, against a plain `URLSession` without a cache; the server runs in this process.
///
/// Only the library writes a durable file on a miss; only the peer uses the network on a hit.
func mediaComparisons() -> [Comparison] {
  [
    media("media/miss 1 kB", goal: 0.3, count: 200) { count, origin, loader in
      for number in 0..<count { _ = try await loader.request(origin.url(number)) }
    },
    media("media/hit 1 kB", goal: 10, count: 200, repeats: true) { count, origin, loader in
      for number in 0..<count { _ = try await loader.request(origin.url(number)) }
    },
    media("media/1000 x 1 kB at once", goal: 0.5, count: 1_000) { count, origin, loader in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<count {
          group.addTask { _ = try await loader.request(origin.url(number)) }
        }
        try await group.waitForAll()
      }
    },
    peakBytes(),
    digest(),
  ]
}

/// The folder of all files, which is removed at the end: without a journal, ext4 searches for a free inode beyond all
/// that were removed in the last minutes, which takes longer than a download.
private let mediaFolder = FileManager.default.temporaryDirectory
  .appending(path: "plexus-benchmark-\(UInt64.random(in: 0 ... .max))")

/// Removes the files that the rows for media have stored.
func removeMediaFiles() {
  try? FileManager.default.removeItem(at: mediaFolder)
}

/// A row for the digest of a file of 100 MB, which is read at each call because it is one of a file URL.
private func digest() -> Comparison {
  @Sendable func file() throws -> URL {
    let file = mediaFolder.appending(path: "digest")
    if !FileManager.default.fileExists(atPath: file.path) {
      try FileManager.default.createDirectory(at: mediaFolder, withIntermediateDirectories: true)
      try Data(repeating: 7, count: 100_000_000).write(to: file)
    }
    return file
  }
  return Comparison(
    name: "media/SHA-256 of 100 MB",
    peer: "sha256sum",
    goal: 0.5,
    ours: {
      let file = try file()
      let loader = MediaLoader(directory: mediaFolder.appending(path: "digests"))
      return try await nanoseconds(per: 1) {
        // No file has this digest: the call fails after it was computed.
        do { _ = try await loader.request(file, sha256: "") } catch is MediaError {}
      }
    },
    theirs: {
      let file = try file()
      return try await nanoseconds(per: 1) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["sha256sum", file.path]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
      }
    }
  )
}

private let largeCount = 500_000_000

/// A row for the growth of a process's peak memory during a download of 500 MB, in bytes.
private func peakBytes() -> Comparison {
  // The server runs in this process, which is not measured.
  @Sendable func peak(_ way: String) async throws -> Double {
    let origin = try BenchmarkOrigin(byteCount: largeCount)
    let child = Process()
    child.executableURL = Bundle.main.executableURL
    child.arguments = ["media-peak", way, origin.address + "/large"]
    let output = Pipe()
    child.standardOutput = output
    try child.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    child.waitUntilExit()
    guard let bytes = Double(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw UsageError("The process that downloads said: \(text)")
    }
    return bytes
  }
  return Comparison(
    name: "media/500 MB, peak bytes",
    peer: "URLSession.data(from:)",
    goal: 10,
    ours: { try await peak("loader") },
    theirs: { try await peak("session") }
  )
}

/// Downloads a file and prints by how much the peak memory of this process has grown.
func printMediaPeak(_ arguments: [String]) async throws {
  guard arguments.count == 3, let url = URL(string: arguments[2]) else {
    throw UsageError("media-peak takes a way and a URL.")
  }
  let before = peakBytesInUse()
  if arguments[1] == "loader" {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "plexus-benchmark-\(UInt64.random(in: 0 ... .max))")
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = try await MediaLoader(directory: folder).request(url)
    let length = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int
    precondition(length == largeCount, "Bytes were lost")
  } else {
    let length = try await URLSession(configuration: .ephemeral).data(from: url).0.count
    precondition(length == largeCount, "Bytes were lost")
  }
  print(peakBytesInUse() - before)
}

/// The peak memory of the process.
private func peakBytesInUse() -> Int {
  #if canImport(Darwin)
  var usage = rusage()
  getrusage(RUSAGE_SELF, &usage)
  return usage.ru_maxrss
  #else
  // rusage includes the process that this one was forked from.
  let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  let kilobytes = line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
  return kilobytes * 1_024
  #endif
}

extension BenchmarkOrigin {
  fileprivate func url(_ number: Int) throws -> URL {
    guard let url = URL(string: "\(address)/files/\(number)") else { throw URLError(.badURL) }
    return url
  }
}

private func media(
  _ name: String,
  goal: Double,
  count: Int,
  repeats: Bool = false,
  _ run: @escaping @Sendable (Int, BenchmarkOrigin, MediaLoader) async throws -> Void
) -> Comparison {
  Comparison(
    name: name,
    peer: "URLSession.data(from:)",
    goal: goal,
    ours: {
      let origin = try BenchmarkOrigin(byteCount: 1_000)
      let folder = mediaFolder.appending(path: "\(UInt64.random(in: 0 ... .max))")
      let loader = MediaLoader(directory: folder)
      if repeats { try await run(count, origin, loader) }
      return try await nanoseconds(per: count) { try await run(count, origin, loader) }
    },
    theirs: {
      let origin = try BenchmarkOrigin(byteCount: 1_000)
      let session = URLSession(configuration: .ephemeral)
      defer { session.invalidateAndCancel() }
      return try await nanoseconds(per: count) {
        if name.hasSuffix("at once") {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
              group.addTask { _ = try await session.data(from: origin.url(number)) }
            }
            try await group.waitForAll()
          }
        } else {
          for number in 0..<count { _ = try await session.data(from: origin.url(number)) }
        }
      }
    }
  )
}
