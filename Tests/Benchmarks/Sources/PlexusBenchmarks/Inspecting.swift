import Foundation
import Plexus
import PlexusInspector

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An event of a busy program.
private struct Arrival: Event {
  let number: Int
}

/// Rows for the time of a program under an inspector.
func inspectorComparisons() -> [Comparison] {
  [
    Comparison(
      name: "inspector/busy",
      peer: "without inspector",
      goal: 0.95,
      ours: { try await busyProgram(isInspected: true) },
      theirs: { try await busyProgram(isInspected: false) }
    )
  ]
}

/// The events of a run: for two to three seconds, nearly 100,000 a second.
private let arrivals = 200_000

/// A cache of a million entries, filled once.
private let million = {
  let map = MultiplexerMap<Int, Int> { $0 }
  map.store(Dictionary(uniqueKeysWithValues: (0..<1_000_000).map { ($0, $0) }))
  return map
}()

/// Returns the time per event of a program that hits a cache of a million entries and posts events, with the work of 9
/// microseconds for each.
private func busyProgram(isInspected: Bool) async throws -> Double {
  let (map, bus) = (million, EventBus())
  let token = bus.observe(Arrival.self) { _ in }
  defer { token.cancel() }
  var reader: StreamReader?
  var inspector: Inspector?
  if isInspected {
    let new = try await Inspector()
    new.add(map, named: "million")
    new.add(bus, named: "events")
    reader = StreamReader(new.url)
    inspector = new
    await reader?.firstBytes()
  }
  let time = await nanoseconds(per: arrivals) {
    var sum = 0
    for number in 0..<arrivals {
      sum &+= work(number)
      sum &+= map[number].cachedValue ?? 0
      bus.post(Arrival(number: number))
    }
    consume(sum)
  }
  reader?.stop()
  await inspector?.stop()
  return time
}

/// Several steps of a congruential generator would be compiled to one: this is a shift register (Marsaglia, 2003).
@inline(never)
private func work(_ seed: Int) -> Int {
  var value = UInt64(truncatingIfNeeded: seed) | 1
  for _ in 0..<4_500 {
    value ^= value << 13
    value ^= value >> 7
    value ^= value << 17
  }
  return Int(truncatingIfNeeded: value)
}

@inline(never)
private func consume(_ value: Int) {}

/// A client that reads the stream of a page, which shows the bus.
private final class StreamReader: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let first = AsyncStream.makeStream(of: Void.self)
  private var session: URLSession?

  init(_ url: URL) {
    super.init()
    let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
    self.session = session
    // The second source.
    session.dataTask(
      with: url.appending(path: "stream").appending(queryItems: [
        URLQueryItem(name: "show", value: "2")
      ])
    ).resume()
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    first.continuation.yield()
  }

  /// Waits for the first bytes.
  func firstBytes() async {
    for await _ in first.stream { return }
  }

  func stop() {
    session?.invalidateAndCancel()
    session = nil
  }
}
