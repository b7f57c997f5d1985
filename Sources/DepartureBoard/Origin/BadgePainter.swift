/// A generator for the badges of airlines.
///
/// The colors are not those of the airlines. Alphabetical neighbors get very different colors, to be easy to
/// distinguish.
enum BadgePainter {
  /// Returns a picture for each airline.
  ///
  /// - Parameter carriers: The codes of all airlines.
  /// - Returns: The pictures by code.
  static func pictures(of carriers: some Sequence<String>) -> [String: Pixmap] {
    let pairs = carriers.sorted().enumerated().map { ($1, picture($0)) }
    return Dictionary(pairs) { first, _ in first }
  }

  private static func picture(_ number: Int) -> Pixmap {
    // Multiples of the golden angle stay far apart.
    let hue = number * 137
    return Pixmap(width: 8, height: 4) { x, y in
      // A bright field with a darker tail.
      Colour(hue: hue, brightness: x + y < 6 ? 230 : 150)
    }
  }
}
