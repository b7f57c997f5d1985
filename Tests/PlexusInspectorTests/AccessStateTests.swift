import Foundation
import Testing

@testable import LoopbackOrigin
@testable import PlexusInspector

@Suite struct `Tokens of an inspector` {
  private let folder = FileManager.default.temporaryDirectory
    .appending(path: "inspector-\(UUID().uuidString)").path(percentEncoded: false)

  private func file(_ port: UInt16 = 8_900) -> TokenFile { TokenFile(port: port, in: folder) }

  private func change(_ attributes: [FileAttributeKey: Any]) throws {
    try FileManager.default.setAttributes(attributes, ofItemAtPath: "\(folder)/8900")
  }

  @Test func `a token has 160 random bits, and matches only itself`() {
    let tokens = Set((0..<1_000).map { _ in AccessToken().text })
    #expect(tokens.count == 1_000)
    let token = AccessToken()
    #expect(token.text.utf8.count == 32 && AccessToken(token.text) == token)
    #expect(token.matches(token.text))
    for index in token.text.indices {
      var other = token.text
      other.replaceSubrange(index...index, with: token.text[index] == "a" ? "b" : "a")
      #expect(!token.matches(other))
    }
    for other in ["", "a", token.text + token.text, token.text + "a", "\(token.text.dropLast())"] {
      #expect(!token.matches(other))
      #expect(AccessToken(other) == nil)
    }
    #expect(Set(tokens.joined()) == Set("abcdefghijklmnopqrstuvwxyz234567"))
  }

  @Test func `the token of a fixed port is kept for a day`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let token = file().token()
    #expect(file().token() == token)
    #expect(file(8_901).token() != token)
    let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/8900")
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    try change([.modificationDate: Date(timeIntervalSinceNow: -86_390)])
    #expect(file().token() == token)
    try change([.modificationDate: Date(timeIntervalSinceNow: -86_410)])
    let next = file().token()
    #expect(next != token && file().token() == next)
    try change([.modificationDate: Date(timeIntervalSinceNow: 3_600)])
    #expect(file().token() != next)
  }

  @Test func `a pipe that has the path of the file of a token is not waited for, and no folder`()
    throws
  {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    _ = file().token()
    try FileManager.default.removeItem(atPath: "\(folder)/8900")
    #expect(mkfifo("\(folder)/8900", 0o600) == 0)
    let token = file().token()
    #expect(file().token() == token)
    try FileManager.default.createDirectory(
      atPath: "\(folder)/8902",
      withIntermediateDirectories: true
    )
    #expect(file(8_902).token() != file(8_902).token())
  }

  @Test func `a file that others can read or have put there is not used`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let token = file().token()
    try change([.posixPermissions: 0o644])
    let second = file().token()
    #expect(second != token && file().token() == second)
    let known = "\(folder)/known"
    let text = String(repeating: "a", count: 32)
    #expect(
      FileManager.default.createFile(
        atPath: known,
        contents: Data(text.utf8),
        attributes: [.posixPermissions: 0o600]
      )
    )
    for link in [symlink, Foundation.link]
      as [(UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32]
    {
      try FileManager.default.removeItem(atPath: "\(folder)/8900")
      #expect(link(known, "\(folder)/8900") == 0)
      #expect(file().token().text != text)
      #expect(try String(contentsOfFile: known, encoding: .utf8) == text)
    }
    try Data("nonsense".utf8).write(to: URL(filePath: "\(folder)/8900"))
    #expect(file().token().text.utf8.count == 32)
  }

  @Test func `requests, connections and the time for a request are limited`() {
    let limits = PageServer.limits
    #expect(limits.headBytes == 8_192 && limits.bodyBytes == 8_192)
    #expect(limits.connections == 64 && limits.refusesConnections && !limits.countsRequests)
    #expect(limits.requestTimeout == .seconds(10))
  }

  @Test func `a token that cannot be kept is a new one`() {
    let file = TokenFile(port: 1, in: "/proc/nowhere")
    #expect(file.token() != file.token())
  }

  @Test func `a restarted inspector has the same address at the same port, and only there`()
    async throws
  {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    func start(_ port: Int) throws -> Inspector {
      try Inspector(port: port, showsValues: false, clock: ContinuousClock(), tokenFolder: folder)
    }
    let first = try start(0)
    let port = try #require(first.url.port)
    await first.stop()
    let second = try start(port)
    await second.stop()
    let third = try start(port)
    #expect(third.url == second.url && third.url != first.url)
    #expect(try start(0).url.path() != third.url.path())
  }
}
