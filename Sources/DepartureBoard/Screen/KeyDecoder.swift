/// Makes keys of what a terminal sends.
///
/// A character may come in pieces. The sequences that arrows and the like send are no keys here; an escape
/// at the end of what came at once is the key of that name.
struct KeyDecoder: Sendable {
  private var pending: [UInt8] = []

  /// Creates a decoder that has seen nothing.
  init() {}

  /// The keys in what has come, after what has come before.
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
        // Ctrl-U clears a line everywhere else.
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

  /// Skips what follows an escape: a sequence, or the key that was pressed together with Alt.
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

  /// The character, if it takes one column: nothing on the board takes more.
  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    guard
      let text = String(validating: bytes, as: UTF8.self), text.first?.takesOneColumn == true
    else { return nil }
    return text
  }
}
