/// The style of a piece of text.
enum Style: Hashable, Sendable {
  case plain
  case strong
  case faint
  case good
  case warning
  case bad
  /// Letters on a background color, or faint or plain letters without colors.
  case badge(Colour, isFaint: Bool)
}

/// A line of text in pieces with different styles.
///
/// Its width is its number of characters, because no character on the board takes two columns.
struct StyledLine: Hashable, Sendable {
  /// A piece with one style.
  struct Span: Hashable, Sendable {
    var text: String
    var style: Style
  }

  private(set) var spans: [Span] = []

  init() {}

  init(_ text: String, _ style: Style = .plain) {
    append(text, style)
  }

  /// The text without styles.
  var text: String {
    spans.map(\.text).joined()
  }

  /// The width of the line in columns.
  var width: Int {
    spans.reduce(0) { $0 + $1.text.count }
  }

  mutating func append(_ text: String, _ style: Style = .plain) {
    guard !text.isEmpty else { return }
    if spans.last?.style == style {
      spans[spans.count - 1].text += text
    } else {
      spans.append(Span(text: text, style: style))
    }
  }

  mutating func append(_ line: Self) {
    for span in line.spans { append(span.text, span.style) }
  }

  /// Returns the line, truncated to a number of columns.
  func clipped(to columns: Int) -> Self {
    var line = StyledLine()
    var room = columns
    for span in spans where room > 0 {
      line.append(String(span.text.prefix(room)), span.style)
      room -= span.text.count
    }
    return line
  }

  /// Returns a line with a piece at each end; without room, the second is omitted.
  static func spread(_ left: Self, _ right: Self, over columns: Int) -> Self {
    let gap = columns - left.width - right.width
    guard gap >= 2 else { return left.clipped(to: columns) }
    var line = left
    line.append(String(repeating: " ", count: gap))
    line.append(right)
    return line
  }
}

extension Character {
  /// Whether the character takes exactly one column of a terminal, among the characters that occur here.
  var takesOneColumn: Bool {
    guard let scalar = unicodeScalars.first, unicodeScalars.count == 1 else { return false }
    return (0x20..<0x7F).contains(scalar.value)
      || (0xA0..<0x300).contains(scalar.value)
        && scalar.value != 0xAD
  }
}

extension String {
  /// The text with a mark in place of each character that does not take exactly one column.
  var inSingleColumns: String {
    String(map { $0.takesOneColumn ? $0 : "\u{FFFD}" })
  }

  /// Returns the text in an exact number of columns, padded with spaces or truncated with an ellipsis.
  func fitted(to columns: Int) -> String {
    let width = count
    guard width > columns else { return self + String(repeating: " ", count: columns - width) }
    guard columns > 1 else { return String(prefix(columns)) }
    return prefix(columns - 1) + "…"
  }
}
