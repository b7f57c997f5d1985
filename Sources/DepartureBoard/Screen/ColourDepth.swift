/// How many colours a terminal has.
enum ColourDepth: CaseIterable, Hashable, Sendable {
  case none
  /// The eight of the oldest colour terminals.
  case eight
  /// A cube of six by six by six.
  case cube
  /// Any.
  case full

  /// Finds out what a terminal can do, as far as the environment tells.
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

  /// The codes for letters that can be read on a ground of a colour; empty without colours.
  func codes(ground: Colour) -> String {
    switch self {
    case .none:
      return ""
    case .eight:
      let number = [ground.red, ground.green, ground.blue].reversed()
        .reduce(0) { 2 * $0 + ($1 < 128 ? 0 : 1) }
      // Green is the light that makes these bright.
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

  /// The nearest of the cube's lights: 0, 95, 135, 175, 215 and 255.
  private static func cubeStep(of light: UInt8) -> Int {
    switch light {
    case ..<48: 0
    case ..<115: 1
    default: min(5, (Int(light) - 35) / 40)
    }
  }
}
