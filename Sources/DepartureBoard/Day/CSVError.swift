/// Why a table cannot be read, and where.
struct CSVError: Error, Equatable {
  /// What is wrong.
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
  /// The line of the text, counted from 1.
  let line: Int
  let reason: Reason
}

extension CSVError: CustomStringConvertible {
  /// A sentence that says where the table is wrong and what was expected.
  var description: String {
    "\(table), line \(line): \(reason)"
  }
}

extension CSVError.Reason: CustomStringConvertible {
  /// What is wrong, without the place.
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
