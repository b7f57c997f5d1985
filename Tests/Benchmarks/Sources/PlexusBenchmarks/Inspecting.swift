import Foundation
import Plexus
import PlexusInspector

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

/// The events of a run: for two to three seconds, 65,000 to 100,000 a second.
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
    let newReader = try StreamReader(new.url)
    try await newReader.firstBytes()
    (inspector, reader) = (new, newReader)
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

/// A client that reads the stream of a page, which shows the bus, on a thread of its own.
///
/// `URLSession` would be measured, too: on Linux, it polls a connection of which it has read everything all the time.
private final class StreamReader: Sendable {
  private let first = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  private let socket: Int32

  init(_ url: URL) throws {
    #if canImport(Darwin)
    let stream = SOCK_STREAM
    #else
    let stream = Int32(SOCK_STREAM.rawValue)
    #endif
    socket = Foundation.socket(AF_INET, stream, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = UInt16(url.port ?? 0).bigEndian
    let isConnected = withUnsafePointer(to: &address) { [socket] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    // The second source.
    let request = Array(
      """
      GET \(url.appending(path: "stream").path())?show=2 HTTP/1.1\r
      Host: 127.0.0.1:\(url.port ?? 0)\r\n\r\n
      """.utf8
    )
    guard isConnected, write(socket, request, request.count) == request.count else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    Thread.detachNewThread { [self] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      var count = read(socket, &buffer, buffer.count)
      if buffer.starts(with: "HTTP/1.1 200".utf8) { first.continuation.yield() }
      while count > 0 { count = read(socket, &buffer, buffer.count) }
      first.continuation.finish()
    }
  }

  deinit {
    close(socket)
  }

  /// Waits for the head of the answer.
  func firstBytes() async throws {
    for await _ in first.stream { return }
    throw POSIXError(.ECONNRESET)
  }

  func stop() {
    shutdown(socket, Int32(SHUT_RDWR))
  }
}
