/// The values of header fields, compared by what they mean (RFC 9111, 4.1).
enum HTTPSelection {
  /// Returns a value in the one spelling of all that mean the same.
  ///
  /// Space around commas does not count, nor does case in the fields that ask for a language, a coding or a
  /// character set. The order of languages does not count either: their weights are their order (RFC 9110, 12.5.4).
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - name: The name of the field in lower case.
  /// - Returns: The value to compare.
  static func normalized(_ value: String, of name: String) -> String {
    let parts = HTTPFreshness.commaSeparated(value)
    switch name {
    case "accept-language":
      return parts.map(Preference.init).sorted { $0.precedes($1) }.map(\.text)
        .joined(separator: ",")
    case "accept-encoding", "accept-charset":
      return parts.map { Preference($0).text }.joined(separator: ",")
    default:
      return parts.joined(separator: ",")
    }
  }

  /// One of several things that a client accepts, with its weight.
  private struct Preference {
    let name: String
    /// The weight in thousandths.
    let weight: Int

    init(_ text: String) {
      let plain = text.filter { $0 != " " && $0 != "\t" }.lowercased()
      let halves = plain.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2, halves[1].hasPrefix("q=") else {
        (name, self.weight) = (plain, 1_000)
        return
      }
      guard let weight = Self.thousandths(halves[1].dropFirst(2)) else {
        (name, self.weight) = (plain, 0)
        return
      }
      (name, self.weight) = (String(halves[0]), weight)
    }

    var text: String { weight == 1_000 ? name : "\(name);q=\(weight)" }

    func precedes(_ other: Preference) -> Bool {
      weight == other.weight ? name < other.name : weight > other.weight
    }

    /// Returns the weight of a number from 0 to 1 with at most three digits after the dot; `nil` for another one.
    private static func thousandths(_ text: Substring) -> Int? {
      let halves = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      let digits = halves.count == 2 ? halves[1] : ""
      guard halves[0] == "0" || halves[0] == "1", digits.utf8.count <= 3,
        digits.utf8.allSatisfy({ (48...57).contains($0) }),
        let rest = Int(digits + String(repeating: "0", count: 3 - digits.utf8.count))
      else { return nil }
      let weight = (halves[0] == "1" ? 1_000 : 0) + rest
      return weight <= 1_000 ? weight : nil
    }
  }
}
