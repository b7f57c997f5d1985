import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce, .timeLimit(.minutes(20)))
struct `The decoder of an image loader` {
  private struct Undecodable: Error {}

  let folder = MediaTestFolder()

  @Test func `remembers a limited number of failures`() async throws {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "?") }
    let decoder = ImageDecoder<Int>(
      media: MediaLoader(
        directory: folder.url,
        transport: transport,
        rules: .patient,
        retry: .never
      ),
      concurrency: 1,
      failureTimeToLive: .seconds(9_999),
      failureLimit: 10,
      usesType: false
    ) { _, _ in throw Undecodable() }
    let items = try (0..<40).map { number in
      MediaItem(MediaRequest(try #require(URL(string: "http://nowhere.invalid/\(number)"))))
    }
    for item in items {
      await #expect(throws: Undecodable.self) { try await decoder.image(for: item) }
    }
    #expect(transport.names.count == 40)
    var remembered = 0
    // The last ones first: a failure that is repeated takes the place of another one.
    for item in items.reversed() {
      let before = transport.names.count
      await #expect(throws: Undecodable.self) { try await decoder.image(for: item) }
      if transport.names.count == before { remembered += 1 }
    }
    #expect(remembered > 0 && remembered <= 10)
  }
}
