/// A record of a log: an entry, a removal or a seal.
///
/// A record begins with a label, which has its own checksum and contains a marker that cannot occur in text,
/// the kind, the lengths, the time and the key. The payload follows. Damage to a payload therefore costs only
/// the entry of a known key.
struct LogRecord: Hashable, Sendable {
  enum Kind: UInt8, Sendable {
    case entry = 1
    case removal = 2
    /// The end of a removal. A removal that is damaged later is followed by a complete record; one that was
    /// interrupted by a crash is not.
    case seal = 3
  }

  /// All fields except the payload.
  struct Label: Hashable, Sendable {
    var kind: Kind
    var key: String
    var storedAt = Duration.zero
    var validator: String?
    var payloadCount = 0
    var payloadChecksum: UInt32 = 0
    /// The size of the label.
    var byteCount = 0

    /// The size of the record.
    var recordByteCount: Int { byteCount + payloadCount }
  }

  var label: Label
  var payload: [UInt8]

  /// The maximum size of one part of a record.
  static var maximumPartCount: Int { Int(clamping: UInt32.max - 1) }

  /// The number of label bytes before the key.
  fileprivate static var fixedCount: Int { 36 }
  private static var noValidator: UInt32 { .max }

  /// Encodes a record.
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

  /// Encodes the removal of an entry, with the length of the entry's record and without its content.
  static func encode(removalInPlaceOf record: LogRecord) -> [UInt8] {
    encode(
      .removal,
      key: record.label.key,
      storedAt: record.label.storedAt,
      validator: record.label.validator.map { String(repeating: "0", count: $0.utf8.count) },
      payload: [UInt8](repeating: 0, count: record.payload.count)
    )
  }

  /// Decodes a record.
  ///
  /// - Returns: The record, or `nil` if the bytes are not exactly one complete record.
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

  fileprivate static func validatorCount(_ number: UInt32) -> Int64? {
    number == noValidator ? nil : Int64(number)
  }
}

extension LogRecord.Label {
  /// Decodes the label of a record that fits into the file.
  ///
  /// Returns `nil` if the label is incomplete or damaged, or if the file ends before the payload does.
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
    // The numbers of a damaged label can be larger than the file.
    let (keySize, validatorSize, payloadSize) = (
      Int64(fixed.number(at: start + 4, as: UInt32.self)),
      LogRecord.validatorCount(fixed.number(at: start + 8, as: UInt32.self)),
      Int64(fixed.number(at: start + 12, as: UInt32.self))
    )
    let size = Int64(fixedCount + 4) + keySize + (validatorSize ?? 0) + payloadSize
    guard size <= Int64(rest) else { return nil }
    let (keyCount, validatorCount) = (Int(keySize), validatorSize.map { Int($0) })
    payloadCount = Int(payloadSize)
    storedAt = Duration(
      secondsComponent: fixed.number(at: start + 16, as: Int64.self),
      attosecondsComponent: fixed.number(at: start + 24, as: Int64.self)
    )
    payloadChecksum = fixed.number(at: start + 32, as: UInt32.self)
    byteCount = fixedCount + keyCount + (validatorCount ?? 0) + 4

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
  /// Appends a number in little-endian order.
  fileprivate mutating func append<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }
}

extension ArraySlice<UInt8> {
  /// Reads a number in little-endian order.
  fileprivate func number<Number: FixedWidthInteger>(at index: Int, as: Number.Type) -> Number {
    self[index..<index + Number.bitWidth / 8].reversed().reduce(0) {
      $0 << 8 | Number(truncatingIfNeeded: $1)
    }
  }
}
