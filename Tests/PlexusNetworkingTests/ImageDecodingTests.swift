import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `Decoding images` {
  /// The error of the decoder of the tests.
  let folder = MediaTestFolder()
  let clock = ManualClock()

  private func url(_ name: some CustomStringConvertible) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(name)"))
  }

  /// A transport that answers with a number of each request, or with the last component of the path.
  private func transport(numbers: Bool = false) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      try receiver.take(request, numbers ? "\(count)" : request.url?.lastPathComponent ?? "")
    }
  }

  private func media(_ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      retry: .never,
      clock: clock
    )
  }

  @Test(.guarantee(.undecodableFilesAreRemembered))
  func `a file that cannot be decoded is not downloaded again for five minutes`() async throws {
    let transport = transport(numbers: true)
    let images = ImageLoader(media: media(transport)) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard text == "2" else { throw Undecodable() }
      return text
    }
    for _ in 0..<3 {
      await #expect(throws: Undecodable.self) { try await images.request(url("a")) }
    }
    #expect(transport.names.count == 1)
    #expect(folder.files.isEmpty)
    clock.advance(by: .seconds(299))
    await #expect(throws: Undecodable.self) { try await images.request(url("a")) }
    clock.advance(by: .seconds(1))
    #expect(try await images.request(url("a")) == "2")
    #expect(transport.names.count == 2)
  }

  @Test(.guarantee(.undecodableFilesAreRemembered))
  func `reloading and clearing end the memory of a failure`() async throws {
    let transport = transport(numbers: true)
    let images = ImageLoader(media: media(transport)) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard text == "2" || text == "4" else { throw Undecodable() }
      return text
    }
    await #expect(throws: Undecodable.self) { try await images.request(url("a")) }
    #expect(try await images.reload(url("a")) == "2")
    await #expect(throws: Undecodable.self) { try await images.request(url("b")) }
    try await images.clear()
    #expect(try await images.request(url("b")) == "4")
  }

  @Test(.guarantee(.damagedFilesAreDownloadedAgain)) func `a damaged file is downloaded once more`()
    async throws
  {
    let transport = transport()
    let media = media(transport)
    let file = try await media.request(url("a"))
    try Data("damaged".utf8).write(to: file)
    let images = ImageLoader(media: media) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard text == "a" else { throw Undecodable() }
      return text
    }
    #expect(try await images.request(url("a")) == "a")
    #expect(transport.names.count == 2)
  }

  @Test(.guarantee(.decodingsAreLimited))
  func `no more images than the limit are decoded at once, the most urgent first`() async throws {
    let gate = Gate()
    let order = Guarded<[String]>([])
    let running = Guarded((now: 0, most: 0))
    let images = ImageLoader(media: media(transport()), concurrency: 2) { data in
      running.withLock { counts in
        counts.now += 1
        counts.most = max(counts.most, counts.now)
      }
      defer { running.withLock { $0.now -= 1 } }
      try await gate.wait()
      let text = String(decoding: data, as: UTF8.self)
      order.withLock { $0.append(text) }
      return text
    }
    let tasks = try (0..<20).map { number in
      let url = try url(number)
      return Task { try await images.request(url) }
    }
    await gate.arrivals(2)
    gate.open()
    for task in tasks { _ = try await task.value }
    #expect(running.withLock { $0.most } == 2)
    #expect(order.withLock { $0.count } == 20)
  }

  @Test(.guarantee(.decodingsAreLimited))
  func `a decoder that waits for other images lets them be decoded`() async throws {
    let box = Guarded<ImageLoader<String>?>(nil)
    let (front, middle, back) = try (url("c/0"), url("c/1"), url("c/2"))
    let images = ImageLoader(media: media(transport()), concurrency: 1) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard text == "0", let images = box.withLock({ $0 }) else { return text }
      async let one = images.request(middle)
      async let two = images.request(back)
      return try await text + one + two
    }
    box.withLock { $0 = images }
    defer { box.withLock { $0 = nil } }
    #expect(try await images.request(front) == "012")
    #expect(try await images.request(url("c/3")) == "3")
  }

  @Test func `a caller that leaves while its image waits to be decoded takes no turn`() async throws
  {
    let gate = Gate()
    let images = ImageLoader(media: media(transport()), concurrency: 1) { data in
      if data.first == UInt8(ascii: "0") { try await gate.wait() }
      return data.count
    }
    let first = Task { [url = try url("0")] in try await images.request(url) }
    await gate.arrivals(1)
    let second = Task { [url = try url("1")] in try await images.request(url) }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    gate.open()
    _ = try await first.value
    #expect(try await images.request(url("1")) == 1)
  }

  @Test func `an image loader reports the progress of a download`() async throws {
    let images = ImageLoader(media: media(transport())) { $0.count }
    let recorder = Recorder(images.progress(of: try url("abc")))
    _ = try await images.request(url("abc"))
    #expect(await recorder.finished().last?.receivedBytes == 3)
    let late = Recorder(images.progress(of: MediaRequest(try url("abc"))))
    #expect(await late.finished() == [DownloadProgress(receivedBytes: 3, totalBytes: 3)])
  }

  @Test(.startsProcess) func `a loader without a concurrency, or a prefetcher, stops the program`()
    async
  {
    await #expect(processExitsWith: .failure) { _ = ImageLoader(concurrency: 0) { $0.count } }
    await #expect(processExitsWith: .failure) { _ = Prefetcher(MediaLoader.main, concurrency: 0) }
    await #expect(processExitsWith: .failure) { _ = MediaLoader(maximumFileBytes: -1) }
  }
}
