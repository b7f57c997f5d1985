/// A row of a table with access by column name.
///
/// An empty field and `NA` represent an unknown value.
struct CSVRow: Sendable {
  let table: String
  let line: Int
  let columns: [String: Int]
  let fields: [String]

  /// Returns the text of a column, or `nil` if it is unknown.
  func text(ifKnown column: String) throws -> String? {
    guard let index = columns[column] else { throw error(.missingColumn(column)) }
    let field = fields[index]
    return field.isEmpty || field == "NA" ? nil : field
  }

  /// Returns the text of a required column.
  func text(_ column: String) throws -> String {
    guard let text = try text(ifKnown: column) else {
      throw error(.missingValue(column: column))
    }
    return text
  }

  /// Returns the integer in a column, or `nil` if it is unknown.
  func integer(ifKnown column: String) throws -> Int? {
    try value(ifKnown: column, "a whole number", Int.init)
  }

  /// Returns the integer in a required column.
  func integer(_ column: String) throws -> Int {
    try value(column, "a whole number", Int.init)
  }

  /// Returns the number in a column, or `nil` if it is unknown.
  func number(ifKnown column: String) throws -> Double? {
    try value(ifKnown: column, "a number", Self.finite)
  }

  /// Returns the number in a required column.
  func number(_ column: String) throws -> Double {
    try value(column, "a number", Self.finite)
  }

  /// Returns the clock time in a column, written `hhmm`, or `nil` if it is unknown.
  func time(ifKnown column: String) throws -> ClockTime? {
    try value(ifKnown: column, "a clock time (hhmm)", ClockTime.init(hhmm:))
  }

  /// Returns the clock time in a required column, written `hhmm`.
  func time(_ column: String) throws -> ClockTime {
    try value(column, "a clock time (hhmm)", ClockTime.init(hhmm:))
  }

  /// Returns an error for this row.
  func error(_ reason: CSVError.Reason) -> CSVError {
    CSVError(table: table, line: line, reason: reason)
  }

  private static func finite(_ text: String) -> Double? {
    guard let number = Double(text), number.isFinite else { return nil }
    return number
  }

  private func value<Value>(
    ifKnown column: String,
    _ expected: String,
    _ convert: (String) -> Value?
  ) throws -> Value? {
    guard let text = try text(ifKnown: column) else { return nil }
    guard let value = convert(text) else {
      throw error(.malformed(column: column, value: text, expected: expected))
    }
    return value
  }

  private func value<Value>(
    _ column: String,
    _ expected: String,
    _ convert: (String) -> Value?
  ) throws -> Value {
    guard let value = try value(ifKnown: column, expected, convert) else {
      throw error(.missingValue(column: column))
    }
    return value
  }
}
