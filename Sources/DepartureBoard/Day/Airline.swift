/// A company that flies.
struct Airline: Codable, Hashable, Sendable {
  /// Its code of two characters.
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
