/// The control sequences of terminals.
enum Ansi {
  /// Switches to the alternate screen, hides the cursor, and disables line wrapping.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
  /// Undoes `enter`.
  static let leave = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// Returns a whole picture, to be written at once.
  ///
  /// Overwritten cells are not cleared, so that nothing flickers. Terminals that support synchronized output show the
  /// picture in one step.
  ///
  /// - Parameters:
  ///   - lines: The lines from top to bottom.
  ///   - colours: The colors that styles can use.
  /// - Returns: The control sequences and the text.
  static func frame(_ lines: [StyledLine], colours: ColourDepth) -> String {
    let text = lines.map { encode($0, colours) + "\u{1B}[K" }
    return "\u{1B}[?2026h\u{1B}[H" + text.joined(separator: "\r\n") + "\u{1B}[J\u{1B}[?2026l"
  }

  private static func encode(_ line: StyledLine, _ colours: ColourDepth) -> String {
    line.spans.map { span in
      let code = code(span.style, colours)
      return code.isEmpty ? span.text : "\u{1B}[\(code)m\(span.text)\u{1B}[0m"
    }.joined()
  }

  private static func code(_ style: Style, _ colours: ColourDepth) -> String {
    let isColoured = colours != .none
    return switch style {
    case .plain: ""
    case .strong: "1"
    case .faint: "2"
    case .good: isColoured ? "32" : ""
    case .warning: isColoured ? "33" : ""
    case .bad: isColoured ? "31" : ""
    case .badge(let ground, _) where isColoured: colours.codes(ground: ground)
    case .badge(_, let isFaint): isFaint ? "2" : ""
    }
  }
}
