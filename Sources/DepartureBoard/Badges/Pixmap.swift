/// A small picture in the binary PPM format of Netpbm.
///
/// A file consists of an ASCII header, `P6 WIDTH HEIGHT MAXIMUM` with any whitespace and with comments from `#`
/// to the end of the line, one whitespace character, and three bytes for each pixel.
struct Pixmap: Hashable, Sendable {
  /// The maximum number of pixels to read, so that a header cannot cause a huge allocation.
  static let limit = 1 << 16

  let width: Int
  let height: Int
  /// The pixels, row by row from the top and from left to right.
  let pixels: [Colour]

  /// Creates a picture.
  ///
  /// - Parameters:
  ///   - width: The number of pixels in a row.
  ///   - height: The number of rows.
  ///   - colour: A closure that returns the color at a position, counted from the left and from the top.
  init(width: Int, height: Int, colour: (_ x: Int, _ y: Int) -> Colour) {
    self.width = width
    self.height = height
    pixels = (0..<height).flatMap { y in (0..<width).map { x in colour(x, y) } }
  }

  /// Decodes a file.
  ///
  /// - Parameter ppm: The bytes of the file.
  /// - Throws: A ``PixmapError`` if the bytes are not a valid picture.
  init(ppm: some Sequence<UInt8>) throws(PixmapError) {
    var rest = Array(ppm)[...]
    guard rest.starts(with: "P6".utf8) else { throw .unknownFormat }
    rest = rest.dropFirst(2)
    let width = try Self.number(&rest)
    let height = try Self.number(&rest)
    let maximum = try Self.number(&rest)
    guard width > 0, height > 0, (1...255).contains(maximum) else { throw .malformedHeader }
    // Numbers have at most six digits, so this does not overflow.
    guard width * height <= Self.limit else { throw .tooLarge(width: width, height: height) }
    guard let separator = rest.popFirst(), Self.isBlank(separator) else { throw .malformedHeader }
    let samples = Array(rest)
    guard samples.count == 3 * width * height else {
      throw .wrongLength(expected: 3 * width * height, found: samples.count)
    }
    guard samples.allSatisfy({ $0 <= maximum }) else { throw .sampleTooLarge }
    let full = samples.map { UInt8(Int($0) * 255 / maximum) }
    self.init(width: width, height: height) { x, y in
      let place = 3 * (y * width + x)
      return Colour(red: full[place], green: full[place + 1], blue: full[place + 2])
    }
  }

  /// The picture encoded as a file.
  var ppm: [UInt8] {
    Array("P6\n\(width) \(height)\n255\n".utf8) + pixels.flatMap { [$0.red, $0.green, $0.blue] }
  }

  /// Reads a number and the whitespace and comments before it from the header.
  private static func number(_ rest: inout ArraySlice<UInt8>) throws(PixmapError) -> Int {
    guard let first = rest.first, isBlank(first) || first == UInt8(ascii: "#") else {
      throw .malformedHeader
    }
    while let byte = rest.first, isBlank(byte) || byte == UInt8(ascii: "#") {
      if isBlank(byte) {
        rest.removeFirst()
      } else {
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
      }
    }
    let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard digits.count <= 6, let number = Int(String(decoding: digits, as: UTF8.self)) else {
      throw .malformedHeader
    }
    rest = rest.dropFirst(digits.count)
    return number
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || (9...13).contains(byte)
  }
}

/// An error in decoding a picture.
enum PixmapError: Error, Hashable {
  case unknownFormat
  case malformedHeader
  case tooLarge(width: Int, height: Int)
  case wrongLength(expected: Int, found: Int)
  case sampleTooLarge
}

extension PixmapError: CustomStringConvertible {
  /// A phrase that describes the error.
  var description: String {
    switch self {
    case .unknownFormat: "a binary PPM begins with P6"
    case .malformedHeader: "the header must have a width, a height and a maximum up to 255"
    case .tooLarge(let width, let height): "\(width) by \(height) pixels are too many"
    case .wrongLength(let expected, let found):
      "\(expected) bytes of colours expected, \(found) found"
    case .sampleTooLarge: "a colour is brighter than the maximum of the header"
    }
  }
}
