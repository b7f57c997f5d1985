internal import Plexus

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The content of an entry's file: a JSON object with a checksum.
///
/// ```json
/// {"plexus":1,"crc32c":"1c291ca3","entry":{"key":"me","schema":"Profile",...,"value":{...}}}
/// ```
///
/// The checksum covers the exact bytes of the `entry` object. The bytes around it are compared with their
/// expected values, so every changed byte is detected.
struct Envelope<Value: Codable & Sendable>: Sendable {
  /// The schema of the values; entries with another schema are ignored.
  let schema: String

  /// Encodes an entry as the content of a file.
  ///
  /// - Throws: The error of encoding the value.
  func encode(
    _ entry: CacheEntry<Value>,
    key: String,
    start: StoredMarks.Start? = nil
  ) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let (seconds, attoseconds) = entry.storedAt.clampedComponents
    let content = try encoder.encode(
      Content(
        key: key,
        schema: schema,
        seconds: seconds,
        attoseconds: attoseconds,
        validator: entry.validator,
        timeToLive: entry.directives.timeToLive.map { Content.Span($0) },
        staleWhileRevalidate: entry.directives.staleWhileRevalidate.map { Content.Span($0) },
        staleIfError: entry.directives.staleIfError.map { Content.Span($0) },
        requiresRevalidation: entry.directives.requiresRevalidation ? true : nil,
        marks: start.flatMap { $0.marks > 0 ? [$0.epoch, $0.marks] : nil },
        tags: entry.tags.isEmpty ? nil : entry.tags.map(\.name),
        value: entry.value
      )
    )
    return Self.opening(for: content) + content + Self.closing
  }

  /// Decodes the content of a file.
  ///
  /// - Returns: The entry, or `nil` if the file is damaged or belongs to another format, schema or key.
  func decode(
    _ bytes: [UInt8],
    key: String,
    marks: StoredMarks = StoredMarks()
  ) -> CacheEntry<Value>? {
    let decoder = JSONDecoder()
    guard
      let content = Self.content(of: bytes),
      let label = try? decoder.decode(Label.self, from: content),
      label.schema == schema,
      label.key.utf8.elementsEqual(key.utf8),
      let content = try? decoder.decode(Content.self, from: content)
    else { return nil }
    var entry = CacheEntry(
      value: content.value,
      storedAt: Duration(
        secondsComponent: content.seconds,
        attosecondsComponent: content.attoseconds
      ),
      validator: content.validator,
      directives: CacheDirectives(
        timeToLive: content.timeToLive?.duration,
        staleWhileRevalidate: content.staleWhileRevalidate?.duration,
        staleIfError: content.staleIfError?.duration,
        requiresRevalidation: content.requiresRevalidation ?? false
      )
    )
    let start = content.marks.flatMap { numbers in
      numbers.count == 2 ? StoredMarks.Start(epoch: numbers[0], marks: numbers[1]) : nil
    }
    entry.note(marks, key, tags: content.tags?.map { CacheTag($0) } ?? [], since: start)
    return entry
  }

  /// Returns the key in the content of a file.
  ///
  /// - Returns: The key, or `nil` if the file is damaged or of another format.
  func key(in bytes: [UInt8]) -> String? {
    guard let content = Self.content(of: bytes) else { return nil }
    return (try? JSONDecoder().decode(Label.self, from: content))?.key
  }

  /// Returns the bytes of the `entry` object, or `nil` if the file is damaged.
  private static func content(of bytes: [UInt8]) -> Data? {
    let size = opening(for: []).count + closing.count
    guard bytes.count > size else { return nil }
    let content = bytes.dropFirst(size - closing.count).dropLast(closing.count)
    guard
      bytes.starts(with: opening(for: content)),
      bytes.suffix(closing.count).elementsEqual(closing)
    else { return nil }
    return Data(content)
  }

  private static func opening(for content: some Collection<UInt8>) -> [UInt8] {
    let digits = String(CRC32C.checksum(content), radix: 16)
    let zeros = String(repeating: "0", count: 8 - digits.utf8.count)
    return Array(#"{"plexus":1,"crc32c":"\#(zeros)\#(digits)","entry":"#.utf8)
  }

  private static var closing: [UInt8] { Array("}\n".utf8) }

  /// The fields that must match before the value is decoded.
  private struct Label: Decodable {
    let key: String
    let schema: String
  }

  private struct Content: Codable {
    let key: String
    let schema: String
    let seconds: Int64
    let attoseconds: Int64
    let validator: String?
    // Missing in older files and ignored by older readers.
    let timeToLive: Span?
    let staleWhileRevalidate: Span?
    let staleIfError: Span?
    let requiresRevalidation: Bool?
    /// The epoch and the number of marks at the start of the fetch.
    let marks: [UInt64]?
    let tags: [String]?
    let value: Value

    struct Span: Codable {
      let seconds: Int64
      let attoseconds: Int64

      init(_ duration: Duration) {
        (seconds, attoseconds) = duration.clampedComponents
      }

      var duration: Duration {
        Duration(secondsComponent: seconds, attosecondsComponent: attoseconds)
      }
    }
  }
}

extension CacheEntry {
  /// Sets the properties that depend on the marks since the start of its fetch.
  mutating func note(
    _ marks: StoredMarks,
    _ key: String,
    tags: [CacheTag],
    since start: StoredMarks.Start?
  ) {
    (isOutdated, isCleared) = marks.judge(key, tags: tags, since: start)
  }
}

extension CacheGeneration {
  /// The part of the generation that is stored with an entry.
  var start: StoredMarks.Start { StoredMarks.Start(epoch: epoch, marks: marks) }
}

extension Duration {
  /// The seconds and attoseconds, clamped to the range of their types.
  var clampedComponents: (seconds: Int64, attoseconds: Int64) {
    min(max(self, .seconds(Int64.min)), .seconds(Int64.max)).components
  }
}
