import TestSupport
import Testing

@testable import Plexus

/// A link that delivers given batches, and then ends.
private final class ScriptedLink: EventLink {
  struct Codec: LinkCodec {
    func encode(_ value: some Encodable) throws -> [UInt8] { [] }

    func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
      throw CancellationError()
    }
  }

  let codec: any LinkCodec = Codec()
  let acknowledged = Log<UInt64>()
  private let script: [[LinkDelivery]]
  private let hasBatches: Bool

  init(_ script: [[LinkDelivery]], hasBatches: Bool) {
    self.script = script
    self.hasBatches = hasBatches
  }

  func deliveries(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<LinkDelivery, any Error> {
    AsyncThrowingStream { continuation in
      for delivery in script.joined() { continuation.yield(delivery) }
      continuation.finish()
    }
  }

  func batches(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<[LinkDelivery], any Error>? {
    guard hasBatches else { return nil }
    return AsyncThrowingStream { continuation in
      for batch in script { continuation.yield(batch) }
      continuation.finish()
    }
  }

  func publish(_ message: LinkMessage, to topic: String) async throws -> LinkPosition { .start }

  func acknowledge(_ position: LinkPosition, of topic: String, group: String) async throws {
    acknowledged.append(position.number)
  }

  func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    because reason: String
  ) async throws {}
}

private func message(_ number: UInt64, version: Int = 1) -> LinkDelivery {
  let message = LinkMessage(
    id: "\(number)",
    type: "topic",
    version: version,
    origin: "other",
    body: []
  )
  return .message(message, at: LinkPosition(epoch: 1, number: number), attempt: 1)
}

@Suite(.fewAtOnce)
struct `The receiving side of a link` {
  /// Receives deliveries until the link ends or the connection is cancelled, and returns the log of what happened.
  private func log(
    _ script: [[LinkDelivery]],
    hasBatches: Bool,
    mode: LinkMode = .everyNode(),
    recordsDecoding: Bool = false,
    cancelsAt last: String? = nil
  ) async -> [String] {
    let log = Log<String>()
    let link = ScriptedLink(script, hasBatches: hasBatches)
    let parts = LinkConnection.Parts(
      link: link,
      topic: "topic",
      version: 1,
      mode: mode,
      origin: "own",
      clock: ContinuousClock().erased(),
      decode: { message throws(LinkRejection) in
        if recordsDecoding { log.append("decode") }
        guard message.id != "0" else { throw .undecodable(reason: "0") }
        return {
          log.append(message.id)
          if message.id == last { withUnsafeCurrentTask { $0?.cancel() } }
        }
      },
      handle: { message in
        log.append("handle \(message.id)")
        if message.id == last { withUnsafeCurrentTask { $0?.cancel() } }
        return .handled
      },
      report: { content in
        switch content {
        case .connected: log.append("connected")
        case .gap: log.append("gap")
        case .skipped(let message, _, _): log.append("skipped \(message.id)")
        case .ended: log.append("ended")
        default: log.append("\(content)")
        }
      }
    )
    await Task { await LinkConnection.run(parts) }.value
    return log.entries + link.acknowledged.entries.map { "acknowledged \($0)" }
  }

  @Test(.guarantee(.linkEventsKeepTheirOrder), arguments: [true, false])
  func `the receiving side of a link delivers events and reports in the order of the link`(
    hasBatches: Bool
  ) async {
    let start = LinkDelivery.connected(at: .start)
    let script = [
      [start, message(1), .gap(lost: nil), message(2), message(3, version: 2), message(0)],
      [message(5)],
      [message(6), message(6), message(7)],
    ]
    #expect(
      await log(script, hasBatches: hasBatches) == [
        "connected", "1", "gap", "2", "skipped 3", "skipped 0", "5", "6", "7", "ended",
      ]
    )
  }

  @Test(.guarantee(.linkEventsKeepTheirOrder))
  func `the receiving side of a link decodes 128 events of a batch before the handlers get them`()
    async
  {
    let script = [[.connected(at: .start)] + (1...300).map { message($0) }]
    let log = await log(script, hasBatches: true, recordsDecoding: true)
    let runs = log.split { $0 == "connected" || $0 == "ended" }.flatMap { $0 }
    let expected = [1...128, 129...256, 257...300].flatMap { numbers in
      numbers.map { _ in "decode" } + numbers.map { "\($0)" }
    }
    #expect(runs == expected)
  }

  @Test(.guarantee(.linkEventsKeepTheirOrder), arguments: [true, false])
  func `the receiving side of a link delivers nothing after it was cancelled, decoded or not`(
    hasBatches: Bool
  ) async {
    let script = [[.connected(at: .start)] + (1...3).map { message($0) }, [message(4)]]
    #expect(await log(script, hasBatches: hasBatches, cancelsAt: "2") == ["connected", "1", "2"])
  }

  @Test(.guarantee(.linkEventsKeepTheirOrder))
  func `the receiving side of a link reads the messages of a group one by one`()
    async
  {
    let script = [[.connected(at: .start), message(1), message(2)]]
    let log = await log(script, hasBatches: true, mode: .oneNode(group: "group"))
    #expect(
      log == [
        "connected", "handle 1", "handle 2", "ended", "acknowledged 1", "acknowledged 2",
      ]
    )
  }

  @Test(.guarantee(.leavingNodesHandOverWithoutRetryTime))
  func `a cancelled receiving side of a link acknowledges nothing, even by the handler`() async {
    let script = [[.connected(at: .start), message(1), message(2), message(3)]]
    let log = await log(script, hasBatches: false, mode: .oneNode(group: "group"), cancelsAt: "2")
    #expect(log == ["connected", "handle 1", "handle 2", "acknowledged 1"])
  }
}
