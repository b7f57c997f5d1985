/// A command as it is sent: an array of strings.
struct RedisCommand: Sendable {
  /// A word of a command.
  enum Argument: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int64)
    case data([UInt8])

    init(stringLiteral text: String) {
      self = .text(text)
    }

    init(integerLiteral number: Int64) {
      self = .number(number)
    }
  }

  /// The name, for error messages.
  let name: String
  /// The bytes to send.
  let encoded: [UInt8]

  init(_ name: String, _ arguments: [Argument] = []) {
    self.name = name
    var bytes: [UInt8] = []
    Self.append(UInt8(ascii: "*"), arguments.count + 1, to: &bytes)
    Self.append(.text(name), to: &bytes)
    for argument in arguments { Self.append(argument, to: &bytes) }
    encoded = bytes
  }

  private static func append(_ argument: Argument, to bytes: inout [UInt8]) {
    switch argument {
    case .text(let text): append(text.utf8, to: &bytes)
    case .number(let number): append(String(number).utf8, to: &bytes)
    case .data(let data): append(data, to: &bytes)
    }
  }

  private static func append(_ word: some Collection<UInt8>, to bytes: inout [UInt8]) {
    append(UInt8(ascii: "$"), word.count, to: &bytes)
    bytes += word
    bytes += [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
  }

  private static func append(_ type: UInt8, _ count: Int, to bytes: inout [UInt8]) {
    bytes.append(type)
    bytes += String(count).utf8
    bytes += [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
  }
}
