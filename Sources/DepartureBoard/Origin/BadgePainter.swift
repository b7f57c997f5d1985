/// Draws the badges of airlines.
///
/// Nobody's livery: neighbours in the alphabet get colours far apart, so that a glance tells airlines apart.
enum BadgePainter {
  /// Draws one badge for each airline.
  ///
  /// - Parameter carriers: The codes of all airlines.
  /// - Returns: The pictures by code.
  static func pictures(of carriers: some Sequence<String>) -> [String: Pixmap] {
    let pairs = carriers.sorted().enumerated().map { ($1, picture($0)) }
    return Dictionary(pairs) { first, _ in first }
  }

  private static func picture(_ number: Int) -> Pixmap {
    // By the golden angle no two of them come close for a long time.
    let hue = number * 137
    return Pixmap(width: 8, height: 4) { x, y in
      // A bright field with a darker tail.
      Colour(hue: hue, brightness: x + y < 6 ? 230 : 150)
    }
  }
}
