#if os(Linux)
import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

/// A file system of a few kilobytes, which only the superuser can mount.
final class SmallDisk: Sendable {
  static let isAvailable = SmallDisk(bytes: 65_536) != nil

  let url: URL

  init?(bytes: Int) {
    url = FileManager.default.temporaryDirectory
      .appending(path: "disk-\(UUID().uuidString)", directoryHint: .isDirectory)
    guard
      (try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)) != nil
    else { return nil }
    guard mount("none", url.path, "tmpfs", 0, "size=\(bytes)") == 0 else { return nil }
  }

  /// Refuses to write from now on; no file must be open for writing.
  func becomeReadOnly() -> Bool {
    mount("none", url.path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), "") == 0
  }

  /// The files on the disk, without folders.
  var files: [String] {
    let found = FileManager.default.enumerator(atPath: url.path)?.allObjects as? [String] ?? []
    return found.filter { (try? Data(contentsOf: url.appending(path: $0))) != nil }
  }

  deinit {
    umount2(url.path, Int32(MNT_DETACH))
    try? FileManager.default.removeItem(at: url)
  }
}

private func loader(_ folder: URL) -> MediaLoader {
  MediaLoader(
    directory: folder,
    transport: URLSessionTransport(timeout: 600),
    rules: .patient,
    retry: .never
  )
}

@Suite(
  .fewAtOnce,
  .enabled(if: SmallDisk.isAvailable, "only the superuser can mount a file system")
)
struct `Media and a real disk that is full or read-only` {
  let origin: LoopbackOrigin
  let disk: SmallDisk

  init() throws {
    disk = try #require(SmallDisk(bytes: 256 << 10))
    origin = try LoopbackOrigin()
    origin.route("/*") { request in
      OriginResponse(
        headers: ["Content-Type": "image/x"],
        body: (0..<(Int(request.pathComponents[0]) ?? 0)).map { UInt8($0 % 251) }
      )
    }
  }

  private func url(_ bytes: Int) throws -> URL {
    try #require(URL(string: "\(origin.address)/\(bytes)"))
  }

  private func body(_ bytes: Int) -> Data { Data((0..<bytes).map { UInt8($0 % 251) }) }

  @Test(.guarantee(.fillingDisksMakeTemporaryFiles))
  func `a file is temporary if its disk is full after some of its bytes`() async throws {
    let loader = loader(disk.url.appending(path: "media"))
    let large = try await loader.request(url(500_000))
    #expect(try Data(contentsOf: large) == body(500_000))
    #expect(!large.path.hasPrefix(disk.url.path))
    #expect(disk.files.isEmpty)
    #expect(origin.statistics.requestCount == 2)
    // There is room for a smaller one.
    let small = try await loader.request(url(100_000))
    #expect(small.path.hasPrefix(disk.url.path))
    #expect(try Data(contentsOf: small) == body(100_000))
  }

  @Test(.guarantee(.fillingDisksMakeTemporaryFiles), .startsProcess)
  func `an image is shown if every disk is full after some of its bytes`()
    async throws
  {
    let (path, address) = (disk.url.path, origin.address)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      let temporary = path + "/temporary"
      try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
      setenv("TMPDIR", temporary, 1)
      let media = loader(URL(filePath: path).appending(path: "media"))
      let url = try #require(URL(string: address + "/500000"))
      let error = await #expect(throws: POSIXError.self) { try await media.request(url) }
      #expect(error?.code == .ENOSPC)
      let images = ImageLoader(media: media) { data, response in
        #expect((response.file == nil) == (data.count == 500_000) && response.type == "image/x")
        return data.enumerated().allSatisfy { $1 == UInt8($0 % 251) } ? data.count : -1
      }
      #expect(try await images.request(url) == 500_000)
      #expect(try await images.reload(url) == 500_000)
      let small = try #require(URL(string: address + "/1000"))
      #expect(try await images.request(small) == 1_000)
      #expect(media.cachedFile(for: small)?.path.hasPrefix(path + "/media") == true)
      _exit(EXIT_SUCCESS)
    }
    #expect(!disk.files.contains { $0.hasSuffix(".part") })
  }

  @Test(.guarantee(.fillingDisksMakeTemporaryFiles))
  func `a file is whole, however little room there is for it and its record`() async throws {
    let loader = loader(disk.url.appending(path: "media"))
    for bytes in stride(from: 240_000, through: 270_000, by: 2_048) {
      let file = try await loader.request(url(bytes))
      #expect(try Data(contentsOf: file) == body(bytes))
      try await loader.remove(url(bytes))
      #expect(disk.files.isEmpty)
    }
  }

  @Test(.guarantee(.fillingDisksMakeTemporaryFiles))
  func `on a read-only disk, its files are used, and others are temporary`() async throws {
    let kept = try await loader(disk.url.appending(path: "media")).request(url(3))
    #expect(disk.becomeReadOnly())
    let loader = loader(disk.url.appending(path: "media"))
    #expect(try await loader.request(url(3)) == kept)
    let digest = "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc"
    for _ in 0..<2 { #expect(try await loader.request(url(3), sha256: digest) == kept) }
    let other = try await loader.request(url(4))
    #expect(try Data(contentsOf: other) == body(4))
    #expect(!other.path.hasPrefix(disk.url.path))
    let images = ImageLoader(media: loader) { $0.count }
    #expect(try await images.request(url(3)) == 3)
    #expect(try await images.request(url(5)) == 5)
    await #expect(throws: (any Error).self) { try await loader.remove(url(3)) }
    #expect(origin.statistics.requests["/3"] == 1)
  }
}
#endif
