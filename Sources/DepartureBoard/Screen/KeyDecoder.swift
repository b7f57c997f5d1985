/// Decodes keys from the input of a terminal.
///
/// A character can arrive in pieces. The sequences of arrow keys and similar ones are skipped. An escape at the end of
/// a piece is the Escape key.
struct KeyDecoder: Sendable {
  private var pending: [UInt8] = []

  /// Creates a decoder without pending input.
  init() {}

  /// Returns the keys in a piece of input, which continues the previous pieces.
  mutating func keys(in bytes: some Sequence<UInt8>) -> [Key] {
    var rest = (pending + bytes)[...]
    pending = []
    var keys: [Key] = []
    while let byte = rest.first {
      switch byte {
      case 0x1B:
        rest.removeFirst()
        if rest.isEmpty { keys.append(.escape) } else { Self.skipSequence(&rest) }
      case 0x08, 0x7F:
        rest.removeFirst()
        keys.append(.backspace)
      case 0x15:
        // Ctrl-U deletes the line, as in other programs.
        rest.removeFirst()
        keys.append(.escape)
      default:
        let length = Self.length(from: byte)
        guard rest.count >= length else {
          pending = Array(rest)
          return keys
        }
        if let text = Self.text(rest.prefix(length)) { keys.append(.text(text)) }
        rest.removeFirst(length)
      }
    }
    return keys
  }

  /// Skips the characters after an escape: a sequence, or the key that was pressed together with Alt.
  private static func skipSequence(_ rest: inout ArraySlice<UInt8>) {
    switch rest.removeFirst() {
    case UInt8(ascii: "["): while let byte = rest.popFirst(), !(0x40...0x7E).contains(byte) {}
    case UInt8(ascii: "O"): rest = rest.dropFirst()
    default: break
    }
  }

  private static func length(from byte: UInt8) -> Int {
    switch byte {
    case 0xC2...0xDF: 2
    case 0xE0...0xEF: 3
    case 0xF0...0xF4: 4
    default: 1
    }
  }

  /// Returns the character if it takes one column, as all text on the board does.
  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    guard
      let text = String(validating: bytes, as: UTF8.self), text.first?.takesOneColumn == true
    else { return nil }
    return text
  }
}
