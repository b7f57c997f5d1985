/// A colour as a mixture of three lights.
struct Colour: Hashable, Sendable {
  var red: UInt8
  var green: UInt8
  var blue: UInt8

  /// Whether black letters are easier to read on it than white ones.
  var isLight: Bool {
    // Green is by far the brightest of the three to the eye, and blue the darkest.
    299 * Int(red) + 587 * Int(green) + 114 * Int(blue) >= 140_000
  }

  /// A strong colour.
  ///
  /// - Parameters:
  ///   - hue: The place on the colour wheel in degrees: red is at 0, green at 120, blue at 240.
  ///   - brightness: How bright its strongest light is.
  init(hue: Int, brightness: UInt8) {
    let full = Int(brightness)
    let least = full / 5
    let degree = ((hue % 360) + 360) % 360
    // From one corner of the wheel to the next, one light fades in or out.
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
