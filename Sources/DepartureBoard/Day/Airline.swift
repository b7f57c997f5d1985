/// An airline.
struct Airline: Codable, Hashable, Sendable {
  /// The two-character code.
  let carrier: String
  let name: String

  /// The name without the legal form.
  var displayName: String {
    name.removingSuffixes([" Inc.", " Co.", " Corporation"])
  }
}

extension Airline {
  init(_ row: CSVRow) throws {
    self.init(carrier: try row.text("carrier"), name: try row.text("name"))
  }
}
