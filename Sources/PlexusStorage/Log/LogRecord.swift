/// A record of a log: an entry, the removal of one, or a seal.
///
/// It begins with a label: a marker that cannot occur in text, the kind, lengths, time and key, with a
/// checksum of their own. The payload follows. So damage to a payload costs one entry, of
/// which it is known which one it is.
struct LogRecord: Hashable, Sendable {
  enum Kind: UInt8, Sendable {
    case entry = 1
    case removal = 2
    /// Nothing but the end of a removal. It tells a removal that was damaged later, which has a whole
    /// record after it, from one that was cut short by a crash, which has none.
    case seal = 3
  }

  /// Everything but the payload.
  struct Label: Hashable, Sendable {
    var kind: Kind
    var key: String
    var storedAt = Duration.zero
    var validator: String?
    var payloadCount = 0
    var payloadChecksum: UInt32 = 0
    /// How many bytes the label takes.
    var byteCount = 0

    /// How many bytes the record takes.
    var recordByteCount: Int { byteCount + payloadCount }
  }

  var label: Label
  var payload: [UInt8]

  /// How many bytes one part of a record can have at most.
  static var maximumPartCount: Int { Int(UInt32.max) - 1 }

  /// How many bytes of a label come before its key.
  fileprivate static var fixedCount: Int { 36 }
  private static var noValidator: UInt32 { .max }

  /// Returns the bytes of a record.
  ///
  /// - Precondition: No part has more than ``maximumPartCount`` bytes.
  static func encode(
    _ kind: Kind,
    key: String,
    storedAt: Duration = .zero,
    validator: String? = nil,
    payload: some Collection<UInt8> = EmptyCollection()
  ) -> [UInt8] {
    let (seconds, attoseconds) = storedAt.clampedComponents
    var bytes: [UInt8] = []
    bytes.reserveCapacity(fixedCount + key.utf8.count + 4 + payload.count)
    bytes += [0xff, 0x50, kind.rawValue, 0]
    bytes.append(UInt32(key.utf8.count))
    bytes.append(validator.map { UInt32($0.utf8.count) } ?? noValidator)
    bytes.append(UInt32(payload.count))
    bytes.append(seconds)
    bytes.append(attoseconds)
    bytes.append(CRC32C.checksum(payload))
    bytes += key.utf8
    bytes += (validator ?? "").utf8
    bytes.append(CRC32C.checksum(bytes))
    bytes += payload
    return bytes
  }

  /// Returns the bytes of the removal of an entry, of the length of that entry's record.
  static func encode(removalInPlaceOf record: LogRecord) -> [UInt8] {
    encode(
      .removal,
      key: record.label.key,
      storedAt: record.label.storedAt,
      validator: record.label.validator,
      payload: record.payload
    )
  }

  /// Reads a record.
  ///
  /// - Returns: `nil` if these are not the bytes of exactly one whole record.
  static func decode(_ bytes: [UInt8]) -> LogRecord? {
    var window = LogWindow(size: bytes.count) { offset, count in
      Array(bytes[offset..<offset + count])
    }
    guard let label = try? Label(at: 0, in: &window), label.recordByteCount == bytes.count else {
      return nil
    }
    let payload = bytes[label.byteCount...]
    guard CRC32C.checksum(payload) == label.payloadChecksum else { return nil }
    return LogRecord(label: label, payload: Array(payload))
  }

  fileprivate static func hasMarker(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes[bytes.startIndex] == 0xff && bytes[bytes.startIndex + 1] == 0x50
      && bytes[bytes.startIndex + 3] == 0
  }

  fileprivate static func validatorCount(_ number: UInt32) -> Int? {
    number == noValidator ? nil : Int(number)
  }
}

extension LogRecord.Label {
  /// Reads the label of a record that fits into the window.
  ///
  /// - Returns: `nil` if there is no whole label, or the file ends before its payload does.
  init?(at offset: Int, in window: inout LogWindow) throws {
    let fixedCount = LogRecord.fixedCount
    let rest = window.size - offset
    guard rest >= fixedCount + 4 else { return nil }
    let fixed = try window.bytes(at: offset, count: fixedCount)
    let start = fixed.startIndex
    guard
      fixed.count == fixedCount,
      LogRecord.hasMarker(fixed),
      let kind = LogRecord.Kind(rawValue: fixed[start + 2])
    else { return nil }
    let keyCount = Int(fixed.number(at: start + 4, as: UInt32.self))
    let validatorCount = LogRecord.validatorCount(fixed.number(at: start + 8, as: UInt32.self))
    payloadCount = Int(fixed.number(at: start + 12, as: UInt32.self))
    storedAt = Duration(
      secondsComponent: fixed.number(at: start + 16, as: Int64.self),
      attosecondsComponent: fixed.number(at: start + 24, as: Int64.self)
    )
    payloadChecksum = fixed.number(at: start + 32, as: UInt32.self)
    let textCount = keyCount + (validatorCount ?? 0)
    byteCount = fixedCount + textCount + 4
    guard byteCount + payloadCount <= rest else { return nil }

    let label = try window.bytes(at: offset, count: byteCount)
    guard
      label.count == byteCount,
      CRC32C.checksum(label.dropLast(4)) == label.number(at: label.endIndex - 4, as: UInt32.self)
    else { return nil }
    let text = label.dropFirst(fixedCount).dropLast(4)
    self.kind = kind
    key = String(decoding: text.prefix(keyCount), as: UTF8.self)
    validator = validatorCount.map { String(decoding: text.suffix($0), as: UTF8.self) }
  }
}

extension [UInt8] {
  /// Appends the bytes of a number, the lowest first.
  fileprivate mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }
}

extension ArraySlice<UInt8> {
  /// Reads a number, the lowest byte first.
  fileprivate func number<Number: FixedWidthInteger>(at index: Int, as: Number.Type) -> Number {
    self[index..<index + Number.bitWidth / 8].reversed().reduce(0) {
      $0 << 8 | Number(truncatingIfNeeded: $1)
    }
  }
}
