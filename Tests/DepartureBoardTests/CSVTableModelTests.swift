import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `A table of comma-separated values` {
  private func rows(_ text: String) throws -> [[String]] {
    try CSVTable(name: "t.csv", text: text).rows.map(\.fields)
  }

  private func error(of text: String) -> CSVError? {
    #expect(throws: CSVError.self) { try CSVTable(name: "t.csv", text: text) }
  }

  @Test func `the first line names the columns and each other line is a row`() throws {
    let table = try CSVTable(name: "t.csv", text: "a,b\n1,2\n3,4\n")
    #expect(try table.rows.map { try $0.text("b") } == ["2", "4"])
    #expect(table.rows.map(\.line) == [2, 3])
  }

  @Test(arguments: [
    ("a,b\n1,2", [["1", "2"]]),
    ("a,b\r\n1,2\r\n", [["1", "2"]]),
    ("a,b\n\n1,2\n\n\n3,4\n\n", [["1", "2"], ["3", "4"]]),
    ("a,b\n,\n", [["", ""]]),
    ("a,b\n\"1\",\"2\"\n", [["1", "2"]]),
    ("a,b\n\"x,y\",2\n", [["x,y", "2"]]),
    ("a,b\n\"x\"\"y\",\"\"\n", [["x\"y", ""]]),
    ("a,b\n\"\"\"\",2\n", [["\"", "2"]]),
    ("a,b\n\"x\ny\",2\n3,4\n", [["x\ny", "2"], ["3", "4"]]),
    ("a,b\r\n\"x\",\"y\"\r\n", [["x", "y"]]),
    ("a,b\nZürich, 2 \n", [["Zürich", " 2 "]]),
    ("a,b\n1\r2,3\n", [["1\r2", "3"]]),
    ("a,b\n", []),
    ("a,b", []),
  ])
  func `quotes, line ends and empty fields are parsed`(
    text: String,
    expected: [[String]]
  ) throws {
    #expect(try rows(text) == expected)
  }

  @Test(arguments: [
    ("", 1, CSVError.Reason.noHeader),
    ("\n\n", 1, .noHeader),
    ("a,a\n", 1, .repeatedColumn("a")),
    ("a,b\n1,2\n3\n", 3, .fieldCount(expected: 2, found: 1)),
    ("a,b\n1,2,3\n", 2, .fieldCount(expected: 2, found: 3)),
    ("a,b\n1,\"2\n3,4\n", 2, .unclosedQuote),
    ("a,b\n\"1\"x,2\n", 2, .textAfterQuote),
    ("a,b\n1\"2,3\n", 2, .quoteInsideField),
    ("a,b\n\"x\ny\",2\n3\n", 4, .fieldCount(expected: 2, found: 1)),
  ])
  func `a malformed table is an error with the line number`(
    text: String,
    line: Int,
    reason: CSVError.Reason
  ) {
    #expect(error(of: text) == CSVError(table: "t.csv", line: line, reason: reason))
  }

  @Test func `the description of an error contains the table, the line and the reason`() {
    let error = error(of: "a,b\n1\n")
    #expect(error?.description == "t.csv, line 2: 2 fields expected, 1 found")
  }
}

@Suite(.fewAtOnce) struct `A row of a table` {
  private func row(_ value: String) throws -> CSVRow {
    try #require(try CSVTable(name: "t.csv", text: "v,w\n\(value),\n").rows.first)
  }

  @Test(arguments: ["", "NA", "\"\"", "\"NA\""])
  func `an empty field and NA are missing values`(field: String) throws {
    let row = try row(field)
    #expect(try row.text(ifKnown: "v") == nil)
    #expect(try row.integer(ifKnown: "v") == nil)
    #expect(try row.number(ifKnown: "v") == nil)
    #expect(try row.time(ifKnown: "v") == nil)
    let missing = row.error(.missingValue(column: "v"))
    #expect(throws: missing) { try row.text("v") }
    #expect(throws: missing) { try row.integer("v") }
    #expect(throws: missing) { try row.number("v") }
    #expect(throws: missing) { try row.time("v") }
  }

  @Test func `values are converted`() throws {
    #expect(try row("-7").integer("v") == -7)
    #expect(try row("6.9e1").number("v") == 69)
    #expect(try row("NAB").text("v") == "NAB")
    #expect(try row("905").time("v") == ClockTime(minutes: 9 * 60 + 5))
  }

  @Test func `a value of the wrong kind is an error that shows it`() throws {
    let row = try row("nan")
    #expect(throws: CSVError.self) { try row.integer("v") }
    #expect(throws: CSVError.self) { try row.number(ifKnown: "v") }
    let error = #expect(throws: CSVError.self) { try row.time("v") }
    #expect(
      error?.description
        == "t.csv, line 2: \"nan\" in the column \"v\" is not a clock time (hhmm)"
    )
  }

  @Test func `a missing column is an error`() throws {
    let row = try row("1")
    #expect(throws: row.error(.missingColumn("x"))) { try row.text(ifKnown: "x") }
  }
}
