import Foundation
import LoopbackOrigin
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The badges` {
  private let origin: LoopbackOrigin
  private let folder: TemporaryFolder
  private let picture = Pixmap(width: 2, height: 1) { x, _ in Colour(hue: 120 * x, brightness: 255)
  }

  init() throws {
    origin = try LoopbackOrigin()
    folder = try TemporaryFolder()
    serve(picture.ppm)
  }

  private func serve(_ body: [UInt8], status: Int = 200) {
    origin.route("/badges/UA.ppm") { _ in OriginResponse(status: status, body: body) }
  }

  private func badges() -> Badges {
    Badges(origin: origin.address, folder: folder.url)
  }

  private var requests: Int { origin.statistics.requestCount }

  @Test func `are downloaded once for many rows`() async {
    let badges = badges()
    await withTaskGroup(of: Badge?.self) { group in
      for _ in 0..<50 { group.addTask { await badges.badge(of: "UA") } }
      for await badge in group { #expect(badge == Badge(picture)) }
    }
    #expect(await badges.badge(of: "UA") == Badge(picture))
    #expect(requests == 1)
    #expect(badges.downloadCount == 1)
  }

  @Test func `are read from disk by the next run, which has another port`() async throws {
    _ = await badges().badge(of: "UA")
    let other = try LoopbackOrigin()
    let next = Badges(origin: other.address, folder: folder.url)
    #expect(await next.badge(of: "UA") == Badge(picture))
    #expect(next.downloadCount == 0)
    #expect(other.statistics.requestCount == 0)
  }

  @Test(arguments: [0, 5, 16])
  func `are downloaded again where the file is damaged`(length: Int) async throws {
    _ = await badges().badge(of: "UA")
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    let name = try #require(names.first { $0.hasPrefix("files/") && $0.hasSuffix(".ppm") })
    try Data(picture.ppm.prefix(length)).write(to: folder.url.appending(path: name))
    let next = badges()
    #expect(await next.badge(of: "UA") == Badge(picture))
    #expect(next.downloadCount == 1)
  }

  @Test func `that cannot be decoded are requested once and no more`() async {
    serve(Array("<html>not a picture</html>".utf8))
    let badges = badges()
    for _ in 0..<5 { #expect(await badges.badge(of: "UA") == nil) }
    #expect(requests == 1)
  }

  @Test(arguments: [404, 500])
  func `that the origin refuses are omitted, and requested again`(status: Int) async {
    serve(picture.ppm, status: status)
    let badges = badges()
    #expect(await badges.badge(of: "UA") == nil)
    serve(picture.ppm)
    #expect(await badges.badge(of: "UA") == Badge(picture))
    #expect(requests == 2)
  }

  @Test func `are omitted while the origin is offline`() async throws {
    let badges = badges()
    await origin.goOffline()
    #expect(await badges.badge(of: "UA") == nil)
    try await origin.goOnline()
    #expect(await badges.badge(of: "UA") == Badge(picture))
    await origin.goOffline()
    #expect(await badges.badge(of: "UA") == Badge(picture))
  }

  @Test func `are shown where their folder cannot be used`() async throws {
    try Data("x".utf8).write(to: URL(filePath: String(folder.path.dropLast())))
    let badges = badges()
    for _ in 0..<5 { #expect(await badges.badge(of: "UA") == Badge(picture)) }
    #expect(requests == 1)
  }

  @Test(arguments: ["", "/", "../../airlines/UA", "a b", "ü?#%", "\u{0}"])
  func `are omitted for invalid airline codes`(carrier: String) async {
    #expect(await badges().badge(of: carrier) == nil)
  }

  @Test func `remove their temporary files without a folder`() async throws {
    let before = try temporaryNames()
    let badges = Badges(origin: origin.address, folder: nil)
    #expect(await badges.badge(of: "UA") == Badge(picture))
    let own = try temporaryNames().subtracting(before)
    #expect(!own.isEmpty)
    badges.removeTemporaryFiles()
    #expect(try temporaryNames().intersection(own).count < own.count)
    #expect(folder.byteCount == 0)
  }

  @Test func `keep their folder for the next run`() async throws {
    let badges = badges()
    _ = await badges.badge(of: "UA")
    badges.removeTemporaryFiles()
    #expect(folder.byteCount > 0)
  }

  /// The names of the temporary folders of programs and tests.
  private func temporaryNames() throws -> Set<String> {
    let path = FileManager.default.temporaryDirectory.path(percentEncoded: false)
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    return Set(names.filter { $0.hasPrefix("DepartureBoard-") })
  }
}
