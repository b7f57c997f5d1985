/// An incremental parser of RESP3.
///
/// Bytes are added as they arrive, cut anywhere, and complete values are taken out. No byte is parsed twice: the parsed
/// part of a value is kept, also between two elements of an array. The server is not trusted: depth, length of lines
/// and memory of a value are limited, and memory is reserved only for bytes that have arrived.
struct RESPParser: Sendable {
  static let longestLine = 64 << 10
  static let greatestDepth = 32

  /// An array, set, map, push or attribute whose elements are still arriving.
  private struct Aggregate: Sendable {
    let type: UInt8
    /// The number of elements that have not arrived yet.
    var missing: Int
    var elements: [RESPValue] = []
  }

  /// The content that a header line announces.
  private enum Header {
    case value(RESPValue)
    case string(length: Int)
    case aggregate(count: Int)
  }

  /// The bytes that have arrived, the first ``position`` of which are parsed.
  private var buffer: [UInt8] = []
  private var position = 0
  /// The position up to which no end of the current line was found.
  private var scanned = 0
  /// The type and length of a string whose header is parsed.
  private var string: (type: UInt8, length: Int)?
  private var aggregates: [Aggregate] = []
  /// The memory of the current value so far, in bytes.
  private var size = 0
  private let maximumSize: Int

  /// Creates a parser.
  ///
  /// - Parameter maximumSize: The largest memory for one value, in bytes.
  init(maximumSize: Int = 512 << 20) {
    self.maximumSize = maximumSize
  }

  /// Adds bytes that have arrived.
  mutating func append(_ bytes: some Collection<UInt8>) {
    if position == buffer.count {
      buffer.removeAll(keepingCapacity: buffer.count <= Self.longestLine)
      (position, scanned) = (0, 0)
    } else if position >= Self.longestLine, position > buffer.count / 2 {
      buffer.removeSubrange(..<position)
      (position, scanned) = (0, scanned - position)
    }
    buffer.append(contentsOf: bytes)
  }

  /// Takes out the next complete value.
  ///
  /// - Returns: The value; `nil` if more bytes are needed.
  /// - Throws: An error if the bytes are not RESP3 or exceed a limit; the parser cannot be used afterwards.
  mutating func next() throws(RESPError) -> RESPValue? {
    while let value = try nextPart() {
      guard let complete = add(value) else { continue }
      size = 0
      return complete
    }
    return nil
  }

  /// Takes out a value that contains no others, or an aggregate without elements.
  private mutating func nextPart() throws(RESPError) -> RESPValue? {
    while true {
      if let (type, length) = string {
        guard let bytes = try takeString(length) else { return nil }
        string = nil
        return Self.stringValue(bytes, type: type)
      }
      guard let line = try takeLine() else { return nil }
      let type = buffer[line.lowerBound]
      switch try header(type, buffer[(line.lowerBound + 1)..<line.upperBound]) {
      case .value(let value):
        try count(line.count)
        return value
      case .string(let length):
        try count(length)
        string = (type, length)
      case .aggregate(let count):
        if let empty = try open(type, count) { return empty }
      }
    }
  }

  /// Takes the line at the position without its end.
  private mutating func takeLine() throws(RESPError) -> Range<Int>? {
    guard let end = buffer[scanned...].firstIndex(of: UInt8(ascii: "\r")) else {
      scanned = buffer.count
      guard scanned - position <= Self.longestLine else { throw .lineTooLong }
      return nil
    }
    guard end - position <= Self.longestLine else { throw .lineTooLong }
    guard end + 1 < buffer.count else {
      scanned = end
      return nil
    }
    guard buffer[end + 1] == UInt8(ascii: "\n"), end > position else { throw .missingLineEnd }
    defer {
      position = end + 2
      scanned = position
    }
    return position..<end
  }

  private mutating func takeString(_ length: Int) throws(RESPError) -> [UInt8]? {
    guard buffer.count - position >= length + 2 else { return nil }
    let end = position + length
    guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
      throw .missingLineEnd
    }
    defer {
      position = end + 2
      scanned = position
    }
    return Array(buffer[position..<end])
  }

  private func header(_ type: UInt8, _ line: ArraySlice<UInt8>) throws(RESPError) -> Header {
    switch type {
    case UInt8(ascii: "+"), UInt8(ascii: "("):
      return .value(.string(Array(line)))
    case UInt8(ascii: "-"):
      return .value(.error(RedisError(line)))
    case UInt8(ascii: ":"):
      return .value(.integer(try Self.number(line)))
    case UInt8(ascii: ","):
      guard let double = Double(String(decoding: line, as: UTF8.self)) else {
        throw .malformedNumber
      }
      return .value(.double(double))
    case UInt8(ascii: "#"):
      switch line.count == 1 ? line.first : nil {
      case UInt8(ascii: "t"): return .value(.boolean(true))
      case UInt8(ascii: "f"): return .value(.boolean(false))
      default: throw .malformedBoolean
      }
    case UInt8(ascii: "_"):
      return .value(.null)
    case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="):
      return try length(line).map { .string(length: $0) } ?? .value(.null)
    case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"), UInt8(ascii: "%"),
      UInt8(ascii: "|"):
      return try length(line).map { .aggregate(count: $0) } ?? .value(.null)
    default:
      throw .unknownType(type)
    }
  }

  /// Reads a length; `nil` for -1, which is a null of RESP2.
  private func length(_ line: ArraySlice<UInt8>) throws(RESPError) -> Int? {
    let number = try Self.number(line)
    guard number >= 0 else {
      guard number == -1 else { throw .malformedNumber }
      return nil
    }
    guard number <= Int64(maximumSize) else { throw .tooLarge }
    return Int(number)
  }

  private static func number(_ line: ArraySlice<UInt8>) throws(RESPError) -> Int64 {
    guard let number = Int64(decimal: line) else { throw .malformedNumber }
    return number
  }

  private static func stringValue(_ bytes: [UInt8], type: UInt8) -> RESPValue {
    switch type {
    case UInt8(ascii: "!"): .error(RedisError(bytes))
    // Verbatim text begins with the three letters of its format and a colon.
    case UInt8(ascii: "="): .string(Array(bytes.dropFirst(4)))
    default: .string(bytes)
    }
  }

  /// Counts the memory of a part of the current value.
  private mutating func count(_ length: Int) throws(RESPError) {
    size += length + MemoryLayout<RESPValue>.stride
    guard size <= maximumSize else { throw .tooLarge }
  }

  /// Begins an aggregate.
  ///
  /// - Returns: The aggregate if it has no elements.
  private mutating func open(_ type: UInt8, _ count: Int) throws(RESPError) -> RESPValue? {
    try self.count(0)
    let hasPairs = type == UInt8(ascii: "%") || type == UInt8(ascii: "|")
    let aggregate = Aggregate(type: type, missing: hasPairs ? 2 * count : count)
    // A value follows its attributes: they are no level of their own, and empty ones are nothing.
    guard aggregate.missing > 0 else {
      return type == UInt8(ascii: "|") ? nil : Self.value(of: aggregate)
    }
    guard aggregates.count < Self.greatestDepth else { throw .nestedTooDeeply }
    aggregates.append(aggregate)
    return nil
  }

  /// Adds a value to the innermost aggregate, and closes the aggregates that it completes.
  ///
  /// - Returns: The outermost value, if it is complete.
  private mutating func add(_ value: RESPValue) -> RESPValue? {
    var value = value
    while let last = aggregates.indices.last {
      aggregates[last].elements.append(value)
      aggregates[last].missing -= 1
      guard aggregates[last].missing == 0 else { return nil }
      let closed = aggregates.removeLast()
      guard closed.type != UInt8(ascii: "|") else { return nil }
      value = Self.value(of: closed)
    }
    return value
  }

  private static func value(of aggregate: Aggregate) -> RESPValue {
    switch aggregate.type {
    case UInt8(ascii: "%"): .map(aggregate.elements)
    case UInt8(ascii: ">"): .push(aggregate.elements)
    default: .array(aggregate.elements)
    }
  }
}
