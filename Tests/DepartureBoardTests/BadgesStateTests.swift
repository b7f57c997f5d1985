import Foundation
import LoopbackOrigin
import PlexusNetworking
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The badges` {
  private let origin: LoopbackOrigin
  private let folder: TemporaryFolder

  init() throws {
    origin = try LoopbackOrigin()
    folder = try TemporaryFolder()
    serve("208\n")
  }

  private func serve(_ text: String, status: Int = 200) {
    origin.route("/badges/UA") { _ in OriginResponse(text: text, status: status) }
  }

  private func badges(_ origin: LoopbackOrigin? = nil, variant: ImageVariant? = nil) -> Badges {
    Badges(origin: (origin ?? self.origin).address, folder: folder.url, variant: variant)
  }

  @Test func `a badge is downloaded once for many rows`() async {
    let badges = badges()
    await withTaskGroup(of: Badge?.self) { group in
      for _ in 0..<50 { group.addTask { await badges.badge(of: "UA") } }
      for await badge in group { #expect(badge?.color == 208) }
    }
    #expect(await badges.badge(of: "UA")?.color == 208)
    #expect(origin.badgeCount == 1)
  }

  @Test(arguments: zip(["16", "196", "46", "21", "231", "255", "3"], [8, 9, 10, 12, 15, 15, 3]))
  func `a badge has one of 16 colors on a terminal with no more`(
    color: String,
    bright: UInt8
  ) async {
    serve(color + "\n")
    #expect(await badges(variant: .sixteenColors).badge(of: "UA")?.color == bright)
    // The file on disk serves both kinds of terminals.
    #expect(await badges().badge(of: "UA")?.color == UInt8(color))
    #expect(origin.badgeCount == 1)
  }

  @Test(
    arguments: [
      (["TERM": "xterm-256color"], true), (["TERM": "linux"], false), ([:], true),
      (["TERM": "xterm", "COLORTERM": "truecolor"], true), (["TERM": "xterm"], false),
    ]
  )
  func `a terminal has 256 colors unless it is known to have fewer`(
    environment: [String: String],
    hasManyColors: Bool
  ) {
    let variant = ImageVariant?.badges(in: environment)
    #expect(variant == (hasManyColors ? nil : .sixteenColors))
  }

  @Test func `badges are read from disk by the next run, although its origin has another port`()
    async throws
  {
    _ = await badges().badge(of: "UA")
    let other = try LoopbackOrigin()
    #expect(await badges(other).badge(of: "UA")?.color == 208)
    #expect(other.badgeCount == 0)
  }

  @Test(arguments: ["", "208", "red\n", "256\n", "-1\n", "<html>not a badge</html>"])
  func `a badge that cannot be decoded is not requested a second time`(text: String) async {
    serve(text)
    let badges = badges()
    for _ in 0..<5 { #expect(await badges.badge(of: "UA") == nil) }
    #expect(origin.badgeCount == 1)
  }

  @Test(arguments: [404, 500])
  func `a badge that the origin refuses is omitted, and requested again later`(status: Int) async {
    serve("208\n", status: status)
    let badges = badges()
    #expect(await badges.badge(of: "UA") == nil)
    serve("208\n")
    #expect(await badges.badge(of: "UA")?.color == 208)
  }

  @Test func `badges are omitted while the origin is offline`() async throws {
    let badges = badges()
    await origin.goOffline()
    #expect(await badges.badge(of: "UA") == nil)
    try await origin.goOnline()
    #expect(await badges.badge(of: "UA")?.color == 208)
    await origin.goOffline()
    #expect(await badges.badge(of: "UA")?.color == 208)
  }

  @Test func `badges are shown although their folder cannot be used`() async throws {
    try Data("x".utf8).write(to: URL(filePath: String(folder.path.dropLast())))
    let badges = badges()
    for _ in 0..<5 { #expect(await badges.badge(of: "UA")?.color == 208) }
    #expect(origin.badgeCount == 1)
  }
}
