/// The random part of the address of an inspector.
///
/// It is compared in a time that does not depend on the position of the first difference.
struct AccessToken: Sendable, Equatable {
  /// The number of characters: 32, with 5 bits each, are 160 bits.
  static let length = 32
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

  /// The characters.
  let text: String

  /// Creates a token by the random numbers of the system.
  init() {
    var generator = SystemRandomNumberGenerator()
    let characters = (0..<Self.length).map { _ in
      Self.alphabet[Int(UInt8.random(in: 0..<32, using: &generator))]
    }
    text = String(decoding: characters, as: UTF8.self)
  }

  /// Creates a token from its text, unless that has another form.
  init?(_ text: String) {
    guard text.utf8.count == Self.length, text.utf8.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    self.text = text
  }

  /// Returns whether a text is the token.
  func matches(_ candidate: String) -> Bool {
    let (own, other) = (Array(text.utf8), Array(candidate.utf8))
    var difference = UInt8(own.count == other.count ? 0 : 1)
    for index in own.indices {
      difference |= own[index] ^ (other.isEmpty ? 0xFF : other[index % other.count])
    }
    return difference == 0
  }
}
