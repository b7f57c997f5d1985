import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `The decoder of an image loader` {
  let folder = MediaTestFolder()

  @Test(.guarantee(.undecodableFilesAreRemembered))
  func `the decoder of an image loader remembers a limited number of failures`()
    async throws
  {
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

  /// Image loaders with a transport that answers with the last component of the path.
  private func images(
    concurrency: Int? = nil,
    _ decode: @escaping @concurrent @Sendable (Data) async throws -> String
  ) -> ImageLoader<String> {
    let media = MediaLoader(
      directory: folder.url,
      transport: ClosureTransport { _, request, receiver in
        try receiver.take(request, request.url?.lastPathComponent ?? "")
      },
      rules: .patient,
      retry: .never
    )
    guard let concurrency else { return ImageLoader(media: media, decode: decode) }
    return ImageLoader(media: media, concurrency: concurrency, decode: decode)
  }

  private func request(_ name: String, _ priority: TaskPriority? = nil) throws -> MediaRequest {
    MediaRequest(try #require(URL(string: "http://nowhere.invalid/" + name)), priority: priority)
  }

  @Test(.guarantee(.decodingsMatchTheCores))
  func `a decoder decodes the most urgent image next, also if it became urgent while it waited`()
    async throws
  {
    let gate = Gate()
    let order = Guarded<[String]>([])
    let images = images(concurrency: 1) { data in
      let name = String(decoding: data, as: UTF8.self)
      order.withLock { $0.append(name) }
      if name == "first" { try await gate.wait() }
      return name
    }
    let names: [(String, TaskPriority?)] = [
      ("first", nil), ("promoted", .low), ("low", .low), ("medium", .medium), ("high", .high),
    ]
    var tasks: [Task<String, any Error>] = []
    for (count, (name, priority)) in names.enumerated() {
      let request = try request(name, priority)
      tasks.append(Task { try await images.request(request) })
      await gate.arrivals(1)
      while images.decoder.gate.waitingCount < count { await Task.detached {}.value }
    }
    let urgent = try request("promoted", TaskPriority(rawValue: TaskPriority.high.rawValue + 1))
    tasks.append(Task { try await images.request(urgent) })
    let key = urgent.url.absoluteString
    while images.decoder.gate.urgency(of: key) != Int(TaskPriority.high.rawValue) + 1 {
      await Task.detached {}.value
    }
    gate.open()
    for task in tasks { _ = try await task.value }
    #expect(order.withLock { $0 } == ["first", "promoted", "high", "medium", "low"])
  }

  @Test(.guarantee(.decodingsMatchTheCores))
  func `the decoder of an image loader decodes as many images at once as there are cores`()
    async throws
  {
    let gate = Gate()
    let images = images { data in
      try await gate.wait()
      return String(decoding: data, as: UTF8.self)
    }
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let tasks = try (0..<cores + 3).map { number in
      let request = try request("\(number)")
      return Task { try await images.request(request) }
    }
    await gate.arrivals(cores)
    while images.decoder.gate.waitingCount < 3 { await Task.detached {}.value }
    #expect(gate.arrivalCount == cores)
    gate.open()
    for task in tasks { _ = try await task.value }
  }
}
