/// A picture reduced to the background colors of an airline's two-letter code.
struct Badge: Hashable, Sendable {
  /// The number of colored characters.
  static let width = 2

  /// The colors from left to right.
  let cells: [Colour]

  /// Creates a badge from a picture of any size: each character gets the mean color of its part.
  init(_ picture: Pixmap) {
    cells = (0..<Self.width).map { cell in
      let begin = cell * picture.width / Self.width
      let end = max(begin + 1, (cell + 1) * picture.width / Self.width)
      return Self.mean(
        (0..<picture.height).flatMap { row in
          picture.pixels[row * picture.width + begin..<row * picture.width + end]
        }
      )
    }
  }

  private static func mean(_ colours: [Colour]) -> Colour {
    func mean(_ light: (Colour) -> UInt8) -> UInt8 {
      UInt8(colours.reduce(0) { $0 + Int(light($1)) } / max(1, colours.count))
    }
    return Colour(red: mean(\.red), green: mean(\.green), blue: mean(\.blue))
  }
}
