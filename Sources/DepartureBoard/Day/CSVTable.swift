/// A table of comma-separated values whose first line names the columns.
///
/// Fields may be quoted; a quoted field may hold commas, line breaks and doubled quotes. Lines end
/// with a line feed, with or without a carriage return before it. Empty lines are skipped.
struct CSVTable: Sendable {
  /// The name by which errors refer to the table.
  let name: String
  /// The rows below the header.
  let rows: [CSVRow]

  /// Reads a table.
  ///
  /// - Parameters:
  ///   - name: The name by which errors refer to it.
  ///   - text: Its text.
  /// - Throws: A ``CSVError`` that names the line.
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
