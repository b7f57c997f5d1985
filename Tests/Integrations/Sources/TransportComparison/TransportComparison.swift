import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import PlexusNetworking
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Compares the transport with a bare client: 10,000 small requests by each in turn, and the ratio of their times.
///
/// Usage: `TransportComparison [REQUESTS [CALLERS [ROUNDS]]]`.
@main
struct TransportComparison {
  static func main() async throws {
    let numbers = CommandLine.arguments.dropFirst().compactMap { Int($0) }
    let requests = numbers.first ?? 10_000
    let callers = numbers.count > 1 ? numbers[1] : 8
    let rounds = numbers.count > 2 ? numbers[2] : 7
    let server = try await serve()
    let url = "http://127.0.0.1:\(server.localAddress?.port ?? 0)/user"
    let client = AsyncHTTPTransport.makeClient()
    let bare: @Sendable () async throws -> Void = {
      var request = HTTPClientRequest(url: url)
      request.headers.add(name: "Accept", value: "application/json")
      let response = try await client.execute(request, timeout: .hours(24))
      let body = try await response.body.collect(upTo: 1 << 20)
      precondition(response.status == .ok && body.readableBytes == 100)
    }
    let transport = AsyncHTTPTransport(client: client)
    guard let parsed = URL(string: url) else { return }
    let adapted: @Sendable () async throws -> Void = {
      var request = URLRequest(url: parsed)
      request.setValue("application/json", forHTTPHeaderField: "Accept")
      let receiver = Receiver()
      try await transport.send(request, to: receiver)
      precondition(receiver.status.withLock { $0 } == 200 && receiver.count.withLock { $0 } == 100)
    }
    // The first round opens the connections.
    for operation in [bare, adapted] { _ = try await time(requests / 10, callers, operation) }
    var ratios: [Double] = []
    for round in 0..<rounds {
      let isEven = round.isMultiple(of: 2)
      let first = try await time(requests, callers, isEven ? bare : adapted)
      let second = try await time(requests, callers, isEven ? adapted : bare)
      let (base, own) = isEven ? (first, second) : (second, first)
      ratios.append(own / base)
      print("bare \(base), transport \(own), ratio \(rounded(own / base))")
    }
    let median = ratios.sorted()[rounds / 2]
    print("\(requests) requests by \(callers) callers, median ratio \(rounded(median))")
    try await client.shutdown()
    try await server.close()
  }

  private static func rounded(_ number: Double) -> Double { (number * 1_000).rounded() / 1_000 }

  private static func time(
    _ requests: Int,
    _ callers: Int,
    _ operation: @escaping @Sendable () async throws -> Void
  ) async throws -> Duration {
    let start = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<callers {
        group.addTask { for _ in 0..<requests / callers { try await operation() } }
      }
      try await group.waitForAll()
    }
    return start.duration(to: .now)
  }

  /// Starts a server that answers each request with a hundred bytes.
  private static func serve() async throws -> any Channel {
    try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .childChannelInitializer { channel in
        channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
          try channel.pipeline.syncOperations.addHandler(Answers())
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
  }
}

private final class Answers: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let body = ByteBuffer(repeating: 7, count: 100)

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .end = unwrapInboundIn(data) else { return }
    let head = HTTPResponseHead(
      version: .http1_1,
      status: .ok,
      headers: [
        "Content-Length": "100", "Content-Type": "application/json", "Cache-Control": "max-age=60",
        "ETag": "\"1\"", "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
      ]
    )
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }
}

private final class Receiver: HTTPReceiver {
  let status = Mutex(0)
  let count = Mutex(0)

  func begin(_ response: HTTPURLResponse) throws {
    status.withLock { $0 = response.statusCode }
  }

  func receive(_ bytes: Data) throws {
    count.withLock { $0 += bytes.count }
  }
}
