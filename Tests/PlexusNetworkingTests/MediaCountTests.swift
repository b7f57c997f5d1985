import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The files that a loader counts, and the files on the disk.
@Suite(.fewAtOnce)
struct `A media loader whose folder others change` {
  let folder = MediaTestFolder()

  private func url(_ number: Int) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(number)"))
  }

  private func loader(bytes: Int? = 400, _ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      byteLimit: bytes,
      retry: .never
    )
  }

  /// The ways to remove files behind the back of a loader.
  enum Removal: CaseIterable {
    case everything, files, each, byAnotherLoader
  }

  @Test(.guarantee(.foreignChangesAreNoticed), arguments: Removal.allCases)
  func `a media loader gives the space of files that others have removed to new ones`(
    removal: Removal
  ) async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, "0123456789")
    }
    let loader = loader(transport)
    for number in 0..<40 {
      for _ in 0..<4 { _ = try await loader.request(url(number)) }
    }
    let manager = FileManager.default
    switch removal {
    case .everything: try manager.removeItem(at: folder.url)
    case .files: try manager.removeItem(at: folder.url.appending(path: "files"))
    case .each:
      for file in folder.files { try manager.removeItem(at: folder.url.appending(path: file)) }
    case .byAnotherLoader: try await self.loader(transport).clear()
    }
    for number in 100..<140 { _ = try await loader.request(url(number)) }
    let first = transport.names.count
    for _ in 0..<3 {
      for number in 100..<140 { _ = try await loader.request(url(number)) }
    }
    // A map of a capacity by cost can be a few short of its limit.
    #expect(transport.names.count - first < 12)
    #expect(folder.files.count >= 36)
  }

  @Test(.guarantee(.foreignChangesAreNoticed))
  func `a media loader gives space to new files if others have removed half of many files`()
    async throws
  {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, "0123456789")
    }
    let loader = loader(bytes: 3_000, transport)
    for number in 0..<300 {
      for _ in 0..<2 { _ = try await loader.request(url(number)) }
    }
    let files = folder.files
    for file in files.prefix(files.count / 2) {
      try FileManager.default.removeItem(at: folder.url.appending(path: file))
    }
    for number in 1_000..<1_400 { _ = try await loader.request(url(number)) }
    #expect(folder.files.count >= 270 && folder.files.count <= 308)
  }

  @Test(.guarantee(.foreignChangesAreNoticed))
  func `a media loader counts files that others have added when space is needed`()
    async throws
  {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, "0123456789")
    }
    let (one, other) = (loader(transport), loader(bytes: nil, transport))
    for number in 0..<30 { _ = try await one.request(url(number)) }
    for number in 100..<130 { _ = try await other.request(url(number)) }
    for number in 200..<220 { _ = try await one.request(url(number)) }
    #expect(folder.files.count <= 48)
  }

  // MARK: - Clearing

  @Test(.guarantee(.clearedMediaCannotBeRead), arguments: [true, false])
  func `a media loader leaves nothing to read when it is cleared, also of a download in progress`(
    isTemporary: Bool
  ) async throws {
    let gate = Gate()
    let seen = Guarded<[String]?>(nil)
    let names = { @Sendable [folder] () -> [String] in
      let manager = FileManager.default
      let temporary = manager.temporaryDirectory
      let spare = (try? manager.contentsOfDirectory(atPath: temporary.path)) ?? []
      // The whole directory can have as many files as a build, which would block the thread for seconds.
      let folders =
        isTemporary
        ? spare.filter { $0.hasPrefix("plexus-media-") }.map { temporary.appending(path: $0) }
        : [folder.url]
      let all = folders.flatMap { folder in
        manager.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL] ?? []
      }
      return all.map(\.path).filter { $0.hasSuffix(".part") }
    }
    let root = folder.url
    if isTemporary {
      try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
      try Data().write(to: root.appending(path: "file"))
    }
    let transport = ClosureTransport { count, request, receiver in
      let text = String(repeating: "secret", count: 10)
      if count == 1 {
        // One that has begun,
        try receiver.take(request, headers: ["ETag": "\"v1\""], text)
        try await gate.wait()
      } else {
        // and one that begins afterwards.
        try await gate.wait()
        try? receiver.take(request, headers: ["ETag": "\"v1\""], text)
      }
      let readable = names().filter {
        (try? String(contentsOfFile: $0, encoding: .utf8))?.contains("secret") == true
      }
      seen.withLock { $0 = ($0 ?? []) + readable }
      throw URLError(.networkConnectionLost)
    }
    let loader = MediaLoader(
      directory: isTemporary ? root.appending(path: "file/folder") : root,
      transport: transport,
      rules: .patient,
      retry: .never
    )
    let first = Task { try await loader.request(url(1)) }
    await gate.arrivals(1)
    let second = Task { try await loader.request(url(2)) }
    await gate.arrivals(2)
    try? await loader.clear()
    gate.open()
    await #expect(throws: MediaError.cleared) { try await first.value }
    await #expect(throws: MediaError.cleared) { try await second.value }
    #expect(seen.withLock { $0 } == [])
    #expect(isTemporary || folder.files.isEmpty)
  }

  @Test(.guarantee(.clearedMediaCannotBeRead))
  func `a media loader evicts nothing for a file that is not kept`()
    async throws
  {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      guard request.url?.lastPathComponent == "999" else {
        return try receiver.take(request, "0123456789")
      }
      try await gate.wait()
      try receiver.begin(request, headers: ["Content-Length": "90"])
      for _ in 0..<9 { try receiver.receive(Data("0123456789".utf8)) }
    }
    let loader = loader(bytes: 300, transport)
    for number in 0..<20 { _ = try await loader.request(url(number)) }
    let large = Task { try await loader.request(url(999)) }
    await gate.arrivals(1)
    try await loader.remove(url(999))
    for number in 20..<25 { _ = try await loader.request(url(number)) }
    let count = folder.files.count
    gate.open()
    await #expect(throws: MediaError.cleared) { try await large.value }
    #expect(folder.files.count == count)
  }

  // MARK: - Progress

  private func images(_ media: MediaLoader) -> ImageLoader<Int> {
    ImageLoader(media: media) { data in
      guard data != Data("bad".utf8) else { throw CocoaError(.fileReadCorruptFile) }
      return data.count
    }
  }

  @Test(.guarantee(.progressEndsWithTheRequest))
  func `a media loader ends the progress of an image in memory whose file is removed`() async throws
  {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    let media = loader(transport)
    let images = images(media)
    _ = try await images.request(url(1))
    try await media.remove(url(1))
    let late = Recorder(images.progress(of: try url(1)))
    #expect(await late.finished() == [DownloadProgress(receivedBytes: 3, totalBytes: 3)])
  }

  @Test(.guarantee(.progressEndsWithTheRequest), arguments: [true, false])
  func `a media loader ends the progress of a file that another loader has stored`(
    asImage: Bool
  ) async throws {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    let media = loader(transport)
    let images = images(media)
    let early = Recorder(asImage ? images.progress(of: try url(1)) : media.progress(of: try url(1)))
    _ = try await loader(transport).request(url(1))
    if asImage {
      _ = try await images.request(url(1))
    } else {
      _ = try await media.request(url(1))
    }
    #expect(await early.finished() == [DownloadProgress(receivedBytes: 3, totalBytes: 3)])
  }

  @Test(.guarantee(.progressEndsWithTheRequest))
  func `a media loader ends the progress of a request that fails without a download`()
    async throws
  {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "bad") }
    let media = loader(transport)
    let images = images(media)
    await #expect(throws: CocoaError.self) { try await images.request(url(1)) }
    let remembered = Recorder(images.progress(of: try url(1)))
    await #expect(throws: CocoaError.self) { try await images.request(url(1)) }
    #expect(await remembered.finished().isEmpty)
    let refused = try #require(URL(string: "ftp://nowhere.invalid/1"))
    let recorder = Recorder(media.progress(of: refused))
    await #expect(throws: MediaError.self) { try await media.request(refused) }
    #expect(await recorder.finished().isEmpty)
    #expect(transport.names.count == 1)
  }

  @Test(.guarantee(.progressEndsWithTheRequest))
  func `a media loader ends the progress of a request that is cancelled or cleared`()
    async throws
  {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      try await gate.wait()
      try receiver.take(request, "abc")
    }
    let media = loader(transport)
    let images = images(media)
    let cancelled = Recorder(images.progress(of: try url(1)))
    let request = Task { try await images.request(url(1)) }
    await gate.arrivals(1)
    request.cancel()
    _ = await request.result
    #expect(await cancelled.finished().isEmpty)
    let cleared = Recorder(images.progress(of: try url(2)))
    let second = Task { try await images.request(url(2)) }
    await gate.arrivals(2)
    try await images.clear()
    gate.open()
    _ = await second.result
    _ = await cleared.finished()
    #expect(folder.files.isEmpty)
  }
}
