internal import Plexus

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The encoding of a log entry's payload: a JSON value, followed by its cache directives, if any.
///
/// The directives end with a byte that never ends a text. A reader without support for them fails to decode
/// the JSON, which is a cache miss, instead of keeping the value for too long.
///
/// | after the JSON | for |
/// |---|---|
/// | 16 bytes, `0xff` | only a time to live |
/// | 16 bytes for each duration, a bit mask, `0xfe` | all other directives |
enum LogPayload {
  private static let timeToLiveMark: UInt8 = 0xff
  private static let directivesMark: UInt8 = 0xfe
  private static let spanCount = 16
  private static var spans: [(bit: UInt8, path: WritableKeyPath<CacheDirectives, Duration?>)] {
    [(1, \.timeToLive), (2, \.staleWhileRevalidate), (4, \.staleIfError)]
  }
  private static let revalidationBit: UInt8 = 8

  static func encode(_ json: Data, directives: CacheDirectives) -> Data {
    guard directives != CacheDirectives() else { return json }
    var payload = json
    payload.reserveCapacity(json.count + spans.count * spanCount + 2)
    if let timeToLive = directives.timeToLive,
      directives == CacheDirectives(timeToLive: timeToLive)
    {
      append(timeToLive, to: &payload)
      payload.append(timeToLiveMark)
      return payload
    }
    var bits: UInt8 = directives.requiresRevalidation ? revalidationBit : 0
    for (bit, path) in spans {
      guard let span = directives[keyPath: path] else { continue }
      append(span, to: &payload)
      bits |= bit
    }
    payload.append(bits)
    payload.append(directivesMark)
    return payload
  }

  /// Splits a payload into the value and its directives.
  ///
  /// - Returns: `nil` if the directives are malformed.
  static func decode(_ payload: [UInt8]) -> (json: Data, directives: CacheDirectives)? {
    var directives = CacheDirectives()
    var rest = payload[...]
    switch rest.last {
    case timeToLiveMark:
      rest.removeLast()
      guard let span = takeSpan(&rest) else { return nil }
      directives.timeToLive = span
    case directivesMark:
      rest.removeLast()
      guard let bits = rest.popLast(), bits < 16 else { return nil }
      directives.requiresRevalidation = bits & revalidationBit != 0
      for (bit, path) in spans.reversed() where bits & bit != 0 {
        guard let span = takeSpan(&rest) else { return nil }
        directives[keyPath: path] = span
      }
    default:
      break
    }
    return (Data(rest), directives)
  }

  private static func append(_ span: Duration, to payload: inout Data) {
    let (seconds, attoseconds) = span.clampedComponents
    for number in [seconds, attoseconds] {
      for shift in stride(from: 0, to: 64, by: 8) {
        payload.append(UInt8(truncatingIfNeeded: number >> shift))
      }
    }
  }

  private static func takeSpan(_ bytes: inout ArraySlice<UInt8>) -> Duration? {
    guard bytes.count >= spanCount else { return nil }
    let span = bytes.suffix(spanCount)
    bytes.removeLast(spanCount)
    return Duration(
      secondsComponent: number(span.prefix(8)),
      attosecondsComponent: number(span.suffix(8))
    )
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
    bytes.reversed().reduce(0) { $0 << 8 | Int64($1) }
  }
}
