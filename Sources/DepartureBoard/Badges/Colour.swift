/// An RGB color.
struct Colour: Hashable, Sendable {
  var red: UInt8
  var green: UInt8
  var blue: UInt8

  /// Whether black text is easier to read on it than white text.
  var isLight: Bool {
    // The weights of perceived brightness (ITU-R BT.601).
    299 * Int(red) + 587 * Int(green) + 114 * Int(blue) >= 140_000
  }

  /// Creates a saturated color.
  ///
  /// - Parameters:
  ///   - hue: The hue in degrees: red is 0, green 120 and blue 240.
  ///   - brightness: The value of the brightest component.
  init(hue: Int, brightness: UInt8) {
    let full = Int(brightness)
    let least = full / 5
    let degree = ((hue % 360) + 360) % 360
    // Between two corners of the color wheel, one component fades in or out.
    let rising = least + (full - least) * (degree % 60) / 60
    let falling = full + least - rising
    let lights =
      switch degree / 60 {
      case 0: (full, rising, least)
      case 1: (falling, full, least)
      case 2: (least, full, rising)
      case 3: (least, falling, full)
      case 4: (rising, least, full)
      default: (full, least, falling)
      }
    self.init(red: UInt8(lights.0), green: UInt8(lights.1), blue: UInt8(lights.2))
  }

  init(red: UInt8, green: UInt8, blue: UInt8) {
    self.red = red
    self.green = green
    self.blue = blue
  }
}
