import BenchmarkOrigin
import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What files cost beside a bare URLSession that keeps nothing, from a server in the same process.
///
/// A miss makes a durable file, which the peer does not; a hit needs no network, which the peer does.
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
  ]
}

private let largeCount = 500_000_000

/// How much more memory a process takes up at most while it downloads 500 MB: bytes here, not nanoseconds.
private func peakBytes() -> Comparison {
  // A server in this process, which does not count; its body is made once, when it is asked for.
  var policy = CachePolicy()
  policy.timeToLive = .seconds(1_000_000)
  let body = Multiplexer<[UInt8]>(policy: policy) { [UInt8](repeating: 7, count: largeCount) }
  @Sendable func peak(_ way: String) async throws -> Double {
    let origin = try LoopbackOrigin()
    origin.route("/large") { _ in OriginResponse(body: (try? await body.request()) ?? []) }
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

/// Downloads what is at an address, and prints how much the memory of this process has grown at most.
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

/// The most memory that the process has ever taken up.
private func peakBytesInUse() -> Int {
  #if canImport(Darwin)
  var usage = rusage()
  getrusage(RUSAGE_SELF, &usage)
  return usage.ru_maxrss
  #else
  // What rusage says includes the process that this one was forked from.
  let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
  let kilobytes = line?.split(separator: " ").compactMap { Int($0) }.first ?? 0
  return kilobytes * 1_024
  #endif
}

extension LoopbackOrigin {
  fileprivate func url(_ number: Int) throws -> URL {
    guard let url = URL(string: "\(address)/files/\(number)") else { throw URLError(.badURL) }
    return url
  }

  fileprivate static func serving() throws -> LoopbackOrigin {
    let origin = try LoopbackOrigin()
    origin.route("/files/*") { _ in OriginResponse(body: Array(repeating: 7, count: 1_000)) }
    return origin
  }
}

private func media(
  _ name: String,
  goal: Double,
  count: Int,
  repeats: Bool = false,
  _ run: @escaping @Sendable (Int, LoopbackOrigin, MediaLoader) async throws -> Void
) -> Comparison {
  Comparison(
    name: name,
    peer: "URLSession.data(from:)",
    goal: goal,
    ours: {
      let origin = try LoopbackOrigin.serving()
      let folder = FileManager.default.temporaryDirectory
        .appending(path: "plexus-benchmark-\(UInt64.random(in: 0 ... .max))")
      defer { try? FileManager.default.removeItem(at: folder) }
      let loader = MediaLoader(directory: folder)
      if repeats { try await run(count, origin, loader) }
      return try await nanoseconds(per: count) { try await run(count, origin, loader) }
    },
    theirs: {
      let origin = try LoopbackOrigin.serving()
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
