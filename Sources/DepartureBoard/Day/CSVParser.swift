/// A parser that splits a text into records and fields, one record at a time.
struct CSVParser {
  /// The fields of a record, and the line on which it begins.
  struct Record: Equatable {
    let line: Int
    let fields: [String]
  }

  private let table: String
  private let bytes: [UInt8]
  private var position = 0
  private var line = 1

  init(table: String, text: String) {
    self.table = table
    bytes = Array(text.utf8)
  }

  /// Returns the next record that is not empty, or `nil` at the end of the text.
  mutating func next() throws -> Record? {
    while position < bytes.count {
      let start = line
      let fields = try record()
      if fields != [""] { return Record(line: start, fields: fields) }
    }
    return nil
  }

  private mutating func record() throws -> [String] {
    var fields: [String] = []
    while true {
      fields.append(try field())
      guard position < bytes.count, bytes[position] == .comma else { break }
      position += 1
    }
    endLine()
    return fields
  }

  private mutating func field() throws -> String {
    guard position < bytes.count, bytes[position] == .quote else { return try plainField() }
    return try quotedField()
  }

  private mutating func plainField() throws -> String {
    let start = position
    while position < bytes.count, bytes[position] != .comma, !isAtEndOfLine {
      guard bytes[position] != .quote else { throw error(.quoteInsideField) }
      position += 1
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func quotedField() throws -> String {
    let start = line
    var content: [UInt8] = []
    position += 1
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      guard byte == .quote else {
        if byte == .lineFeed { line += 1 }
        content.append(byte)
        continue
      }
      if position < bytes.count, bytes[position] == .quote {
        content.append(.quote)
        position += 1
        continue
      }
      guard position == bytes.count || bytes[position] == .comma || isAtEndOfLine else {
        throw error(.textAfterQuote)
      }
      return String(decoding: content, as: UTF8.self)
    }
    throw CSVError(table: table, line: start, reason: .unclosedQuote)
  }

  private var isAtEndOfLine: Bool {
    switch bytes[position] {
    case .lineFeed: true
    case .carriageReturn: position + 1 == bytes.count || bytes[position + 1] == .lineFeed
    default: false
    }
  }

  private mutating func endLine() {
    if position < bytes.count, bytes[position] == .carriageReturn { position += 1 }
    if position < bytes.count, bytes[position] == .lineFeed { position += 1 }
    line += 1
  }

  private func error(_ reason: CSVError.Reason) -> CSVError {
    CSVError(table: table, line: line, reason: reason)
  }
}

extension UInt8 {
  fileprivate static let comma = UInt8(ascii: ",")
  fileprivate static let quote = UInt8(ascii: "\"")
  fileprivate static let lineFeed = UInt8(ascii: "\n")
  fileprivate static let carriageReturn = UInt8(ascii: "\r")
}
