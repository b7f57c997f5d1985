/// A registered aircraft.
struct Aircraft: Codable, Hashable, Sendable {
  let tailNumber: String
  /// The year of construction, if known.
  let year: Int?
  /// The registered name of the manufacturer, in capitals and with the legal form.
  let manufacturer: String
  let model: String
  let engines: Int
  let seats: Int

  /// The common name of the manufacturer, and the model.
  var displayName: String {
    let words = manufacturer.split(separator: " ").filter { !Self.legalForms.contains($0) }
    let maker = words.map(Self.capitalized).joined(separator: " ")
    return maker.isEmpty ? model : "\(maker) \(model)"
  }

  private static let legalForms: Set<Substring> = [
    "INDUSTRIE", "INC", "LTD", "CO", "CORP", "CORPORATION", "AIRCRAFT",
  ]

  private static func capitalized(_ word: Substring) -> String {
    if word.hasPrefix("MC"), word.count > 2 { return "Mc" + capitalized(word.dropFirst(2)) }
    return word.prefix(1) + word.dropFirst().lowercased()
  }
}

extension Aircraft {
  init(_ row: CSVRow) throws {
    self.init(
      tailNumber: try row.text("tailnum"),
      year: try row.integer(ifKnown: "year"),
      manufacturer: try row.text("manufacturer"),
      model: try row.text("model"),
      engines: try row.integer("engines"),
      seats: try row.integer("seats")
    )
  }
}
