import Foundation
import BenchmarkOrigin
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
    media("media/1000 x 1 kB at once", goal: 0.3, count: 1_000) { count, origin, loader in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<count {
          group.addTask { _ = try await loader.request(origin.url(number)) }
        }
        try await group.waitForAll()
      }
    },
  ]
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
