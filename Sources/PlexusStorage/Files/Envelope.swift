internal import Plexus

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The content of an entry's file: one JSON object that says what it is and can tell whether it is whole.
///
/// ```json
/// {"plexus":1,"crc32c":"1c291ca3","entry":{"key":"me","schema":"Profile",...,"value":{...}}}
/// ```
///
/// The object that is the entry is covered by the checksum, byte by byte as it stands there. What stands
/// around it is compared with what it must be, so that no byte of a file can change unnoticed.
struct Envelope<Value: Codable & Sendable>: Sendable {
  /// What the values are: entries of any other schema are not used.
  let schema: String

  /// Returns the content of the file for an entry.
  ///
  /// - Throws: What encoding the value throws.
  func encode(_ entry: CacheEntry<Value>, key: String) throws -> [UInt8] {
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
        value: entry.value
      )
    )
    return Self.opening(for: content) + content + Self.closing
  }

  /// Returns the entry in a file.
  ///
  /// - Returns: `nil` if the file is damaged, of another format or schema, or another key's.
  func decode(_ bytes: [UInt8], key: String) -> CacheEntry<Value>? {
    let decoder = JSONDecoder()
    guard
      let content = Self.content(of: bytes),
      let label = try? decoder.decode(Label.self, from: content),
      label.schema == schema,
      label.key.utf8.elementsEqual(key.utf8),
      let content = try? decoder.decode(Content.self, from: content)
    else { return nil }
    return CacheEntry(
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
  }

  /// Returns the key of the entry in a file.
  ///
  /// - Returns: `nil` if the file is damaged or of another format.
  func key(in bytes: [UInt8]) -> String? {
    guard let content = Self.content(of: bytes) else { return nil }
    return (try? JSONDecoder().decode(Label.self, from: content))?.key
  }

  /// The object that is the entry, if it is whole.
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

  /// What must fit before the value is looked at.
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
    // Older files have none of these, and older readers ignore them.
    let timeToLive: Span?
    let staleWhileRevalidate: Span?
    let staleIfError: Span?
    let requiresRevalidation: Bool?
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

extension Duration {
  /// Seconds and attoseconds, or the nearest that their types can hold.
  var clampedComponents: (seconds: Int64, attoseconds: Int64) {
    min(max(self, .seconds(Int64.min)), .seconds(Int64.max)).components
  }
}
