import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce) struct `Files behind a token` {
  let folder = MediaTestFolder()
  let clock = ManualClock()

  @Test func `a file is downloaded once more with the new token`() async throws {
    let desk = SignInDesk()
    desk.reject("a1")
    let media = MediaLoader(
      directory: folder.url,
      transport: desk.transport,
      rules: .patient,
      retry: .never,
      clock: clock
    )
    let url = try #require(URL(string: "https://api.example/file"))
    let files = (0..<20).map { _ in Task { try await media.request(url) } }
    for file in files {
      #expect(try String(decoding: Data(contentsOf: await file.value), as: UTF8.self) == "a2")
    }
    #expect(desk.sent == ["a1", "a2"])
  }

  @Test func `a request that is cancelled when its rejection has arrived refreshes nothing`()
    async throws
  {
    let gate = Gate()
    let desk = SignInDesk { _, request, receiver in
      guard request.authorization == "a1" else { return false }
      try receiver.begin(request, status: 401)
      _ = await Task.detached { try await gate.wait() }.result
      return true
    }
    let request = Task { try await desk.get() }
    await gate.arrivals(1)
    request.cancel()
    gate.open()
    await #expect(throws: CancellationError.self) { try await request.value }
    #expect(desk.fetchCount == 1)
    #expect(desk.sent == ["a1"])
    #expect(desk.ended.count == 0)
    #expect(try await desk.get() == "a2")
  }
}
