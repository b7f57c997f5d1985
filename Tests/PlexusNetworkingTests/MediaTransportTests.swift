import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport without network: it sends four bytes, and the last two when a gate lets it.
private final class ScriptedTransport: HTTPTransport {
  let gate = Gate()
  let headers: [String: String]
  let status: Int
  let extra: Int

  init(headers: [String: String] = ["Content-Length": "4"], status: Int = 200, extra: Int = 0) {
    self.headers = headers
    self.status = status
    self.extra = extra
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    let url = try #require(request.url)
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: headers)
    )
    try receiver.begin(response)
    try receiver.receive(Data([1, 2]))
    try await gate.wait()
    try receiver.receive(Data([3, 4] + Array(repeating: 5, count: extra)))
  }
}

@Suite(.fewAtOnce)
struct `A transport of one's own` {
  let folder = MediaTestFolder()
  let url: URL

  init() throws {
    url = try #require(URL(string: "http://nowhere.invalid/a.bin"))
  }

  private func loader(_ transport: ScriptedTransport) -> MediaLoader {
    MediaLoader(directory: folder.url, transport: transport, retry: .never)
  }

  @Test func `a transport of one's own brings a file`() async throws {
    let transport = ScriptedTransport()
    transport.gate.open()
    let file = try await loader(transport).request(url)
    #expect(try Data(contentsOf: file) == Data([1, 2, 3, 4]))
  }

  @Test(.guarantee(.clearsDuringDownloadsStoreNothing))
  func `a download that is complete after the loader was cleared is not kept`() async throws {
    let transport = ScriptedTransport()
    let loader = loader(transport)
    let request = Task { try await loader.request(url) }
    await transport.gate.arrivals(1)
    try await loader.clear()
    transport.gate.open()
    await #expect(throws: MediaError.cleared) { try await request.value }
    #expect(folder.files.isEmpty)
    #expect(loader.cachedFile(for: url) == nil)
  }

  @Test func `a folder that disappears during a download is made again, and the file loaded again`()
    async throws
  {
    let transport = ScriptedTransport()
    let loader = loader(transport)
    let request = Task { try await loader.request(url) }
    await transport.gate.arrivals(1)
    try FileManager.default.removeItem(at: folder.url)
    transport.gate.open()
    #expect(try Data(contentsOf: await request.value) == Data([1, 2, 3, 4]))
    #expect(folder.files.count == 1)
  }

  @Test(
    .guarantee(.lengthAndDigestAreVerified),
    arguments: [
      (["Content-Length": "9"], 200, 0), (["Content-Length": "4"], 200, 1),
      (["Content-Range": "bytes 0-3/4"], 206, 0),
    ] as [([String: String], Int, Int)]
  )
  func `a length or part that was not announced is an error and leaves nothing`(
    headers: [String: String],
    status: Int,
    extra: Int
  ) async throws {
    let transport = ScriptedTransport(headers: headers, status: status, extra: extra)
    transport.gate.open()
    await #expect(throws: (any Error).self) { try await loader(transport).request(url) }
    #expect(folder.files.isEmpty)
  }

  @Test func `a part that does not begin at the requested byte is not used`() async throws {
    let first = ScriptedTransport(headers: ["Content-Length": "9", "ETag": "\"v1\""])
    first.gate.open()
    await #expect(throws: URLError.self) { try await loader(first).request(url) }
    #expect(folder.parts.count == 1)
    let second = ScriptedTransport(headers: ["Content-Range": "bytes 2-5/6"], status: 206)
    second.gate.open()
    await #expect(throws: MediaError.inconsistentLength) { try await loader(second).request(url) }
    #expect(folder.files.isEmpty)
  }
}
