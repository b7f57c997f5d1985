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
/// | after these, the tags as JSON, their length in 4 bytes, an epoch and a number in 8 each, `0xfd` | the tags and the \
/// start of the fetch |
enum LogPayload {
  private static let timeToLiveMark: UInt8 = 0xff
  private static let directivesMark: UInt8 = 0xfe
  private static let startMark: UInt8 = 0xfd
  private static let spanCount = 16
  private static var spans: [(bit: UInt8, path: WritableKeyPath<CacheDirectives, Duration?>)] {
    [(1, \.timeToLive), (2, \.staleWhileRevalidate), (4, \.staleIfError)]
  }
  private static let revalidationBit: UInt8 = 8

  static func encode(
    _ json: Data,
    directives: CacheDirectives,
    tags: [CacheTag],
    start: StoredMarks.Start?
  ) -> Data {
    var payload = encode(json, directives: directives)
    let start = start.flatMap { $0.marks > 0 ? $0 : nil }
    guard !tags.isEmpty || start != nil else { return payload }
    // Texts can always be encoded.
    let names = tags.isEmpty ? Data() : (try? JSONEncoder().encode(tags.map(\.name))) ?? Data()
    payload.append(names)
    append(UInt32(truncatingIfNeeded: names.count), to: &payload)
    append(start?.epoch ?? 0, to: &payload)
    append(start?.marks ?? 0, to: &payload)
    payload.append(startMark)
    return payload
  }

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

  /// The parts of a payload.
  struct Parts {
    var json = Data()
    var directives = CacheDirectives()
    var tags: [CacheTag] = []
    var start: StoredMarks.Start?
  }

  /// Splits a payload into the value and its metadata.
  ///
  /// - Returns: `nil` if the metadata are malformed.
  static func decode(_ payload: [UInt8]) -> Parts? {
    var parts = Parts()
    var directives = CacheDirectives()
    var rest = payload[...]
    if rest.last == startMark {
      rest.removeLast()
      guard rest.count >= 20 else { return nil }
      let numbers = Array(rest.suffix(20))
      rest.removeLast(20)
      let count = Int(truncatingIfNeeded: number(numbers[0..<4]))
      guard count >= 0, count <= rest.count else { return nil }
      if count > 0 {
        let names = try? JSONDecoder().decode([String].self, from: Data(rest.suffix(count)))
        guard let names else { return nil }
        parts.tags = names.map { CacheTag($0) }
        rest.removeLast(count)
      }
      parts.start = StoredMarks.Start(
        epoch: UInt64(bitPattern: number(numbers[4..<12])),
        marks: UInt64(bitPattern: number(numbers[12..<20]))
      )
    }
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
    parts.json = Data(rest)
    parts.directives = directives
    return parts
  }

  private static func append(_ span: Duration, to payload: inout Data) {
    let (seconds, attoseconds) = span.clampedComponents
    append(seconds, to: &payload)
    append(attoseconds, to: &payload)
  }

  private static func append(_ number: some FixedWidthInteger, to payload: inout Data) {
    for shift in stride(from: 0, to: number.bitWidth, by: 8) {
      payload.append(UInt8(truncatingIfNeeded: number >> shift))
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
