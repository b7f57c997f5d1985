/// A table of comma-separated values with the column names in the first line.
///
/// Fields can be quoted; a quoted field can contain commas, line breaks and doubled quotes. Lines end
/// with a line feed, with or without a preceding carriage return. Empty lines are skipped.
struct CSVTable: Sendable {
  /// The name of the table in errors.
  let name: String
  /// The rows below the header.
  let rows: [CSVRow]

  /// Parses a table.
  ///
  /// - Parameters:
  ///   - name: The name of the table in errors.
  ///   - text: The text of the table.
  /// - Throws: A ``CSVError`` with the line number.
  init(name: String, text: String) throws {
    self.name = name
    var parser = CSVParser(table: name, text: text)
    guard let header = try parser.next() else {
      throw CSVError(table: name, line: 1, reason: .noHeader)
    }
    var columns: [String: Int] = [:]
    for (index, column) in header.fields.enumerated() {
      guard columns.updateValue(index, forKey: column) == nil else {
        throw CSVError(table: name, line: header.line, reason: .repeatedColumn(column))
      }
    }
    var rows: [CSVRow] = []
    while let record = try parser.next() {
      guard record.fields.count == columns.count else {
        throw CSVError(
          table: name,
          line: record.line,
          reason: .fieldCount(expected: columns.count, found: record.fields.count)
        )
      }
      rows.append(
        CSVRow(table: name, line: record.line, columns: columns, fields: record.fields)
      )
    }
    self.rows = rows
  }
}
