/// An error in a table, with its position.
struct CSVError: Error, Equatable {
  /// The reason for an error.
  enum Reason: Equatable {
    case noHeader
    case repeatedColumn(String)
    case unclosedQuote
    case textAfterQuote
    case quoteInsideField
    case fieldCount(expected: Int, found: Int)
    case missingColumn(String)
    case missingValue(column: String)
    case malformed(column: String, value: String, expected: String)
  }

  /// The name of the table.
  let table: String
  /// The line number, counted from 1.
  let line: Int
  let reason: Reason
}

extension CSVError: CustomStringConvertible {
  /// A sentence with the position of the error and the expectation.
  var description: String {
    "\(table), line \(line): \(reason)"
  }
}

extension CSVError.Reason: CustomStringConvertible {
  /// The error without its position.
  var description: String {
    switch self {
    case .noHeader:
      "the table is empty; its first line must name the columns"
    case .repeatedColumn(let name):
      "the column \"\(name)\" is named twice"
    case .unclosedQuote:
      "a quoted field is never closed"
    case .textAfterQuote:
      "a closing quote must be followed by a comma or the end of the line"
    case .quoteInsideField:
      "a field with a quote in it must be quoted as a whole"
    case .fieldCount(let expected, let found):
      "\(expected) fields expected, \(found) found"
    case .missingColumn(let name):
      "there is no column \"\(name)\""
    case .missingValue(let column):
      "the column \"\(column)\" must not be empty"
    case .malformed(let column, let value, let expected):
      "\"\(value)\" in the column \"\(column)\" is not \(expected)"
    }
  }
}
