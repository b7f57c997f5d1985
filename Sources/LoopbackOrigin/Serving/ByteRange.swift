/// What the `Range` field of a request comes to for a resource of a certain length.
enum ByteRange: Equatable {
  /// There is none, or none that the origin understands: the whole is sent.
  case whole
  /// A part is sent.
  case part(Range<Int>)
  /// There is no such part.
  case unsatisfiable

  /// Reads the field.
  ///
  /// - Parameters:
  ///   - field: The value of `Range`.
  ///   - length: The length of the resource.
  init(_ field: String?, length: Int) {
    self = .whole
    // Of several parts at once the whole is sent, as the standard allows.
    guard let field, field.lowercased().hasPrefix("bytes="), !field.contains(",") else { return }
    let bounds = field.dropFirst(6).filter { $0 != " " }
      .split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard bounds.count == 2,
      bounds.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    else { return }
    // Numbers that are too large for the machine lie beyond every end.
    let first = bounds[0].isEmpty ? nil : Int(bounds[0]) ?? .max
    let last = bounds[1].isEmpty ? nil : Int(bounds[1]) ?? .max
    switch (first, last) {
    case (nil, nil):
      return
    case (let first?, let last):
      if let last, last < first { return }
      self = first < length ? .part(first..<min(last ?? .max, length - 1) + 1) : .unsatisfiable
    case (nil, let suffix?):
      self = suffix > 0 && length > 0 ? .part(max(0, length - suffix)..<length) : .unsatisfiable
    }
  }
}
