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

    init(type: UInt8, missing: Int) {
      self.type = type
      self.missing = missing
      elements.reserveCapacity(min(missing, 16))
    }
  }

  /// Strings of one byte, such as the names of fields, which need no memory of their own.
  private static let singleBytes = (UInt8.min...UInt8.max).map { RESPValue.string([$0]) }

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
  /// The innermost aggregate, and those around it.
  private var aggregate: Aggregate?
  private var outer: [Aggregate] = []
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
        guard let value = try takeString(length, type: type) else { return nil }
        string = nil
        return value
      }
      guard let line = try takeLine() else { return nil }
      let header = try Self.header(in: buffer, line, limit: maximumSize)
      switch header {
      case .value(let value):
        try count(line.count)
        return value
      case .string(let length):
        try count(length)
        string = (buffer[line.lowerBound], length)
      case .aggregate(let count):
        if let empty = try open(buffer[line.lowerBound], count) { return empty }
      }
    }
  }

  /// Takes the line at the position without its end.
  private mutating func takeLine() throws(RESPError) -> Range<Int>? {
    var end = scanned
    while end < buffer.count, buffer[end] != UInt8(ascii: "\r") { end += 1 }
    scanned = end
    guard end - position <= Self.longestLine else { throw .lineTooLong }
    guard end + 1 < buffer.count else { return nil }
    guard buffer[end + 1] == UInt8(ascii: "\n"), end > position else { throw .missingLineEnd }
    let line = position..<end
    position = end + 2
    scanned = position
    return line
  }

  private mutating func takeString(
    _ length: Int,
    type: UInt8
  ) throws(RESPError) -> RESPValue? {
    guard buffer.count - position >= length + 2 else { return nil }
    let start = position
    let end = start + length
    guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
      throw .missingLineEnd
    }
    position = end + 2
    scanned = position
    if length == 1, type == UInt8(ascii: "$") { return Self.singleBytes[Int(buffer[start])] }
    return Self.stringValue(Array(buffer[start..<end]), type: type)
  }

  private static func header(
    in buffer: [UInt8],
    _ line: Range<Int>,
    limit: Int
  ) throws(RESPError) -> Header {
    let content = buffer[(line.lowerBound + 1)..<line.upperBound]
    let type = buffer[line.lowerBound]
    switch type {
    case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="):
      return try length(content, limit: limit).map { .string(length: $0) } ?? .value(.null)
    case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"), UInt8(ascii: "%"),
      UInt8(ascii: "|"):
      return try length(content, limit: limit).map { .aggregate(count: $0) } ?? .value(.null)
    case UInt8(ascii: ":"):
      return .value(.integer(try number(content)))
    case UInt8(ascii: "_"):
      return .value(.null)
    case UInt8(ascii: "+"), UInt8(ascii: "("):
      return .value(.string(Array(content)))
    case UInt8(ascii: "-"):
      return .value(.error(RedisError(content)))
    case UInt8(ascii: ","):
      guard let double = Double(String(decoding: content, as: UTF8.self)) else {
        throw .malformedNumber
      }
      return .value(.double(double))
    case UInt8(ascii: "#"):
      switch content.count == 1 ? content.first : nil {
      case UInt8(ascii: "t"): return .value(.boolean(true))
      case UInt8(ascii: "f"): return .value(.boolean(false))
      default: throw .malformedBoolean
      }
    default:
      throw .unknownType(type)
    }
  }

  /// Reads a length; `nil` for -1, which is a null of RESP2.
  private static func length(
    _ line: ArraySlice<UInt8>,
    limit: Int
  ) throws(RESPError) -> Int? {
    let number = try number(line)
    guard number >= 0 else {
      guard number == -1 else { throw .malformedNumber }
      return nil
    }
    guard number <= Int64(limit) else { throw .tooLarge }
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
    let missing = hasPairs ? 2 * count : count
    // A value follows its attributes: they are no level of their own, and empty ones are nothing.
    guard missing > 0 else {
      return type == UInt8(ascii: "|") ? nil : Self.value(of: Aggregate(type: type, missing: 0))
    }
    if let around = aggregate.take() {
      guard outer.count + 1 < Self.greatestDepth else { throw .nestedTooDeeply }
      outer.append(around)
    }
    aggregate = Aggregate(type: type, missing: missing)
    return nil
  }

  /// Adds a value to the innermost aggregate, and closes the aggregates that it completes.
  ///
  /// - Returns: The outermost value, if it is complete.
  private mutating func add(_ value: RESPValue) -> RESPValue? {
    var value = value
    while let missing = aggregate?.missing {
      aggregate?.elements.append(value)
      aggregate?.missing = missing - 1
      guard missing == 1, let closed = aggregate.take() else { return nil }
      aggregate = outer.popLast()
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
