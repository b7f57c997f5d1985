/// The number of colors of a terminal.
enum ColourDepth: CaseIterable, Hashable, Sendable {
  case none
  /// The eight colors of the oldest color terminals.
  case eight
  /// A color cube of six by six by six.
  case cube
  /// Any color.
  case full

  /// Determines the abilities of the terminal from the environment.
  ///
  /// - Parameter environment: The variables of the environment.
  init(environment: [String: String]) {
    let terminal = environment["TERM", default: ""]
    if !environment["NO_COLOR", default: ""].isEmpty {
      self = .none
    } else if ["truecolor", "24bit"].contains(environment["COLORTERM"])
      || terminal.hasSuffix("-direct")
    {
      self = .full
    } else if terminal.contains("256")
      || ["kitty", "alacritty", "foot", "wezterm", "ghostty"].contains(where: terminal.contains)
    {
      self = .cube
    } else {
      self = .eight
    }
  }

  /// Returns the codes for legible letters on a background color; empty without colors.
  func codes(ground: Colour) -> String {
    switch self {
    case .none:
      return ""
    case .eight:
      let number = [ground.red, ground.green, ground.blue].reversed()
        .reduce(0) { 2 * $0 + ($1 < 128 ? 0 : 1) }
      // The green component makes these colors bright.
      return "\(number & 2 == 0 ? 37 : 30);\(40 + number)"
    case .cube:
      let number = [ground.red, ground.green, ground.blue]
        .reduce(0) { 6 * $0 + Self.cubeStep(of: $1) }
      return "38;5;\(ground.isLight ? 16 : 231);48;5;\(16 + number)"
    case .full:
      let ink = ground.isLight ? "0;0;0" : "255;255;255"
      return "38;2;\(ink);48;2;\(ground.red);\(ground.green);\(ground.blue)"
    }
  }

  /// Returns the nearest of the cube's levels: 0, 95, 135, 175, 215 and 255.
  private static func cubeStep(of light: UInt8) -> Int {
    switch light {
    case ..<48: 0
    case ..<115: 1
    default: min(5, (Int(light) - 35) / 40)
    }
  }
}
