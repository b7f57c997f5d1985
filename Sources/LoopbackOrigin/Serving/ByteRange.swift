/// The result of applying a `Range` field to a resource.
enum ByteRange: Equatable {
  /// The whole resource, because there is no supported range.
  case whole
  /// A part of the resource.
  case part(Range<Int>)
  /// A range outside the resource.
  case unsatisfiable

  /// Parses a `Range` field.
  ///
  /// - Parameters:
  ///   - field: The value of `Range`.
  ///   - length: The length of the resource.
  init(_ field: String?, length: Int) {
    self = .whole
    // Multiple ranges are ignored, as the standard permits.
    guard let field, field.lowercased().hasPrefix("bytes="), !field.contains(",") else { return }
    let bounds = field.dropFirst(6).filter { $0 != " " }
      .split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard bounds.count == 2,
      bounds.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    else { return }
    // Numbers that overflow are beyond the end of every resource.
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
