#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The payload of a log's entry: a value as JSON, followed by its time to live if it has one of its own.
///
/// What follows the JSON ends with a byte that no text ends with. A reader that does not know of it takes the
/// payload for no JSON, and the entry for none: a miss, and not a value that is kept for too long.
enum LogPayload {
  private static let mark: UInt8 = 0xff
  private static let tailCount = 17

  static func encode(_ json: Data, timeToLive: Duration?) -> Data {
    guard let timeToLive else { return json }
    let (seconds, attoseconds) = timeToLive.clampedComponents
    var payload = json
    payload.reserveCapacity(json.count + tailCount)
    for number in [seconds, attoseconds] {
      for shift in stride(from: 0, to: 64, by: 8) {
        payload.append(UInt8(truncatingIfNeeded: number >> shift))
      }
    }
    payload.append(mark)
    return payload
  }

  /// Takes a payload apart.
  ///
  /// - Returns: `nil` if it is none.
  static func decode(_ payload: [UInt8]) -> (json: Data, timeToLive: Duration?)? {
    guard payload.last == mark else { return (Data(payload), nil) }
    guard payload.count >= tailCount else { return nil }
    let tail = payload.suffix(tailCount).dropLast()
    let timeToLive = Duration(
      secondsComponent: number(tail.prefix(8)),
      attosecondsComponent: number(tail.suffix(8))
    )
    return (Data(payload.dropLast(tailCount)), timeToLive)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
    bytes.reversed().reduce(0) { $0 << 8 | Int64($1) }
  }
}
