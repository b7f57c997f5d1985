internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The SHA-256 digests of stored files; each is computed once, and stored with the record of its file.
final class MediaDigests: Sendable {
  private struct Key: Hashable, Sendable {
    let name: String
    let version: FileVersion
    let folder: MediaFolder

    static func == (one: Key, other: Key) -> Bool {
      one.version == other.version && one.name == other.name
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(name)
      hasher.combine(version)
    }
  }

  private struct Replaced: Error {}

  private let map: MultiplexerMap<Key, String>

  /// Creates the digests of the files of a loader.
  init(_ core: MediaCore) {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
    policy.whenUnobserved = .cancel
    map = MultiplexerMap(id: "MediaLoader digests", policy: policy, capacity: .count(1_000)) {
      key in
      if let digest = key.folder.record(of: key.name, key.version)?.digest { return digest }
      let digest = try Self.digest(of: key.folder.file(named: key.name))
      // Another file can have taken its place, also while it was read.
      guard key.folder.properties(of: key.name)?.version == key.version else { throw Replaced() }
      core.store(digest: digest, of: key.name, key.version, in: key.folder)
      return digest
    }
  }

  /// Returns the digest of a file in lower-case hexadecimal digits, or `nil` if another file has taken its place.
  ///
  /// A file of a file URL belongs to others, who can change it, so that it is read each time.
  @concurrent
  func digest(of pinned: MediaStore.PinnedFile, named name: String) async throws -> String? {
    guard let store = pinned.store else { return try Self.digest(of: pinned.file) }
    do {
      return try await map.request(
        Key(name: name, version: pinned.properties.version, folder: store.folder)
      )
    } catch {
      // It can also have been removed before it was opened.
      guard store.folder.properties(of: name)?.version == pinned.properties.version else {
        if error is CancellationError { throw error }
        return nil
      }
      throw error
    }
  }

  /// Computes the digest of a file, of which a piece at a time is in memory.
  private static func digest(of file: URL) throws -> String {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    var digest = SHA256()
    while let piece = try handle.read(upToCount: 1 << 18), !piece.isEmpty {
      try Task.checkCancellation()
      digest.update([UInt8](piece))
    }
    return digest.hexadecimalDigest()
  }
}
