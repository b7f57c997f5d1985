import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Records of files, and the pins that keep files within the limit.
@Suite(.fewAtOnce) struct `The folder of a media loader` {
  private let folder = MediaTestFolder()
  private let name = String(repeating: "0", count: 64)

  /// Stores a file without a record.
  private func store(
    _ text: String,
    _ name: String? = nil,
    in media: MediaFolder
  ) throws
    -> FileProperties
  {
    let name = name ?? self.name
    let part = try media.makePart(of: name, HTTPPart())
    try part.write(Data(text.utf8), at: 0)
    let properties = try #require(part.properties)
    try media.complete(part, named: name)
    return properties
  }

  private func record(_ version: FileVersion, tag: String) -> MediaRecord {
    MediaRecord(version: version, now: 1_000) { $0 == "ETag" ? tag : nil }
  }

  @Test(.guarantee(.recordsBelongToTheirVersion))
  func `a media folder changes the record of the requested version, and of no other`() throws {
    let media = MediaFolder(root: folder.url)
    let old = try store("old", in: media).version
    media.store(record(old, tag: "1"), of: name)
    let new = try store("newer", in: media).version
    media.store(record(new, tag: "2"), of: name)
    #expect(!media.changeRecord(of: name, old) { $0.entityTag = "3" })
    #expect(media.record(of: name, new)?.entityTag == "2")
    #expect(media.record(of: name, old) == nil)
    #expect(media.changeRecord(of: name, new) { $0.entityTag = "4" })
    #expect(media.record(of: name, new)?.entityTag == "4")
  }

  @Test(.guarantee(.recordsBelongToTheirVersion))
  func `a media folder keeps a renewal when the digest of the file comes later`() async throws {
    let core = MediaLoader(directory: folder.url).core
    let media = MediaFolder(root: folder.url)
    let version = try store("abc", in: media).version
    media.store(record(version, tag: "1"), of: name)
    // The digest was begun before the renewal, and is known after it.
    #expect(media.changeRecord(of: name, version) { $0.staleFrom = 2_000 })
    core.store(digest: "ba78", of: name, version, in: media)
    #expect(media.record(of: name, version)?.staleFrom == 2_000)
    #expect(media.record(of: name, version)?.digest == "ba78")
    let next = try store("abd", in: media).version
    media.store(record(next, tag: "2"), of: name)
    core.store(digest: "ba78", of: name, version, in: media)
    #expect(media.record(of: name, next)?.digest == nil)
  }

  @Test(.guarantee(.recordsBelongToTheirVersion))
  func `a media folder replaces a folder or a link that should be a record`() throws {
    let media = MediaFolder(root: folder.url)
    let version = try store("abc", in: media).version
    let place = folder.url.appending(path: "records/" + name)
    let manager = FileManager.default
    try manager.createDirectory(
      at: place.appending(path: "inner"),
      withIntermediateDirectories: true
    )
    media.store(record(version, tag: "1"), of: name)
    #expect(media.record(of: name, version)?.entityTag == "1")
    try manager.removeItem(at: place)
    let secret = folder.url.appending(path: "secret")
    try Data("secret".utf8).write(to: secret)
    try manager.createSymbolicLink(at: place, withDestinationURL: secret)
    media.store(record(version, tag: "2"), of: name)
    #expect(media.record(of: name, version)?.entityTag == "2")
    #expect(try Data(contentsOf: secret) == Data("secret".utf8))
    #expect(!folder.files.contains { $0.hasPrefix("removed-") })
    #expect(folder.records == ["records/" + name])
  }

  @Test(.guarantee(.downloadedFilesAreHeld))
  func `a media folder keeps a file that is held before it counts, or could not be replaced`()
    throws
  {
    let media = MediaFolder(root: folder.url)
    let limit = DiskLimit(bytes: 10, folder: media)
    var (pin, _): (FilePin?, FileProperties) = try limit.pin(name) {
      try store("abc", in: media)
    }
    for number in 0..<20 {
      let other = String(repeating: "1", count: 63) + String(number, radix: 36)
      limit.insert(other, length: Int(try store("0123456789", other, in: media).length))
    }
    #expect(media.properties(of: name) != nil)
    // Another process has stored it, so that it does not count here.
    let unknown = String(repeating: "3", count: 64)
    _ = try store("abc", unknown, in: media)
    #expect(throws: Broken.self) { try limit.pin(unknown) { throw Broken() } }
    #expect(media.properties(of: unknown) != nil)
    pin.map(limit.list)
    pin = nil
    #expect(media.properties(of: name) != nil, "It was handed out last")
    for number in 0..<20 {
      let other = String(repeating: "2", count: 63) + String(number, radix: 36)
      limit.insert(other, length: Int(try store("0123456789", other, in: media).length))
    }
    #expect(media.properties(of: name) == nil)
  }

  @Test(.guarantee(.downloadedFilesAreHeld), arguments: [200, 206])
  func `a media folder does not count parts that were dropped`(status: Int) async throws {
    let transport = ClosureTransport { count, request, receiver in
      if count == 1 {
        let headers = ["ETag": "\"1\"", "Content-Length": "9000"]
        try receiver.take(request, headers: headers, String(repeating: "x", count: 3_000))
        throw URLError(.networkConnectionLost)
      }
      let isPart = count == 2 && status == 206
      let headers = ["ETag": "\"2\"", "Content-Range": "bytes 3000-3002/3003"]
      try receiver.take(request, status: isPart ? 206 : 200, headers: headers, "abc")
    }
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      byteLimit: 20_000,
      retry: .never
    )
    let url = try #require(URL(string: "http://nowhere.invalid/a"))
    await #expect(throws: URLError.self) { try await loader.request(url) }
    #expect(loader.core.countedNames.count == 1)
    let file = try await loader.request(url)
    #expect(loader.core.countedNames == [file.lastPathComponent])
    #expect(folder.parts.isEmpty)
  }
}
