/// One row of a table, read by the names of its columns.
///
/// An empty field and `NA` both mean that the value is not known.
struct CSVRow: Sendable {
  let table: String
  let line: Int
  let columns: [String: Int]
  let fields: [String]

  /// The text of a column; `nil` if it is not known.
  func text(ifKnown column: String) throws -> String? {
    guard let index = columns[column] else { throw error(.missingColumn(column)) }
    let field = fields[index]
    return field.isEmpty || field == "NA" ? nil : field
  }

  /// The text of a column that must be known.
  func text(_ column: String) throws -> String {
    guard let text = try text(ifKnown: column) else {
      throw error(.missingValue(column: column))
    }
    return text
  }

  /// The whole number in a column; `nil` if it is not known.
  func integer(ifKnown column: String) throws -> Int? {
    try value(ifKnown: column, "a whole number", Int.init)
  }

  /// The whole number in a column that must be known.
  func integer(_ column: String) throws -> Int {
    try value(column, "a whole number", Int.init)
  }

  /// The number in a column; `nil` if it is not known.
  func number(ifKnown column: String) throws -> Double? {
    try value(ifKnown: column, "a number", Self.finite)
  }

  /// The number in a column that must be known.
  func number(_ column: String) throws -> Double {
    try value(column, "a number", Self.finite)
  }

  /// The clock time in a column, written `hhmm`; `nil` if it is not known.
  func time(ifKnown column: String) throws -> ClockTime? {
    try value(ifKnown: column, "a clock time (hhmm)", ClockTime.init(hhmm:))
  }

  /// The clock time in a column that must be known, written `hhmm`.
  func time(_ column: String) throws -> ClockTime {
    try value(column, "a clock time (hhmm)", ClockTime.init(hhmm:))
  }

  /// An error at this row.
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
