import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `A picture` {
  private let picture = Pixmap(width: 3, height: 2) { x, y in
    Colour(red: UInt8(10 * x), green: UInt8(20 * y), blue: 255)
  }

  private func pixmap(_ header: String, _ samples: [UInt8]) throws(PixmapError) -> Pixmap {
    try Pixmap(ppm: Array(header.utf8) + samples)
  }

  @Test func `is decoded as it was encoded`() throws {
    let file = picture.ppm
    #expect(file.starts(with: "P6\n3 2\n255\n".utf8))
    #expect(file.count == 11 + 3 * 6)
    #expect(try Pixmap(ppm: file) == picture)
  }

  @Test(arguments: [
    "P6 1 1 255 ", "P6\n1\t1\r\n255\n", "P6\n# by nobody\n1 1\n# 9 9\n255\n", "P6#x\n1#y\n1 255\n",
    "P6 001 1 255\n",
  ])
  func `can have white space and comments in its header`(header: String) throws {
    let picture = try pixmap(header, [1, 2, 3])
    #expect(picture.width == 1 && picture.height == 1)
    #expect(picture.pixels == [Colour(red: 1, green: 2, blue: 3)])
  }

  @Test func `is scaled by its maximum`() throws {
    let pixels = try pixmap("P6 1 1 15\n", [0, 5, 15]).pixels
    #expect(pixels == [Colour(red: 0, green: 85, blue: 255)])
  }

  @Test(arguments: [
    ("", PixmapError.unknownFormat), ("P", .unknownFormat), ("P5 1 1 255\n", .unknownFormat),
    ("<html>", .unknownFormat), ("P6", .malformedHeader), ("P61 1 255\n", .malformedHeader),
    ("P6 1 1 255", .malformedHeader), ("P6 -1 1 255\n", .malformedHeader),
    ("P6 0 1 255\n", .malformedHeader), ("P6 1 0 255\n", .malformedHeader),
    ("P6 1 1 0\n", .malformedHeader), ("P6 1 1 256\n", .malformedHeader),
    ("P6 1 1 65535\n", .malformedHeader), ("P6 1x1 255\n", .malformedHeader),
    ("P6 1 1 255x", .malformedHeader), ("P6 # no end", .malformedHeader),
    ("P6 99999999999999999999 1 255\n", .malformedHeader),
    ("P6 999999 999999 255\n", .tooLarge(width: 999_999, height: 999_999)),
    ("P6 65537 1 255\n", .tooLarge(width: 65537, height: 1)),
    ("P6 1 1 255\n", .wrongLength(expected: 3, found: 0)),
    ("P6 1 1 255\nab", .wrongLength(expected: 3, found: 2)),
    ("P6 1 1 255\nabcd", .wrongLength(expected: 3, found: 4)),
    ("P6 1 1 9\n\u{9}\u{A}\u{0}", .sampleTooLarge),
  ])
  func `rejects other formats`(file: String, error: PixmapError) {
    #expect(throws: error) { try Pixmap(ppm: file.utf8) }
    #expect(!error.description.isEmpty)
  }

  @Test func `rejects a truncated file`() {
    let file = picture.ppm
    for length in 0..<file.count {
      #expect(throws: PixmapError.self) { try Pixmap(ppm: file.prefix(length)) }
    }
  }

  @Test func `can be decoded or is rejected after any change of a byte`() {
    let file = picture.ppm
    var (decoded, rejected) = (0, 0)
    for index in file.indices {
      for byte in UInt8.min ... .max {
        var changed = file
        changed[index] = byte
        if let picture = try? Pixmap(ppm: changed) {
          _ = Badge(picture)
          decoded += 1
        } else {
          rejected += 1
        }
      }
    }
    #expect(decoded > 0 && rejected > 0)
  }
}

@Suite(.fewAtOnce) struct `A badge` {
  private let red = Colour(red: 200, green: 0, blue: 0)
  private let blue = Colour(red: 0, green: 0, blue: 100)

  @Test func `has the mean color of each half of a picture`() {
    let halves = Pixmap(width: 8, height: 3) { x, _ in x < 4 ? red : blue }
    #expect(Badge(halves).cells == [red, blue])
    let chequered = Pixmap(width: 4, height: 2) { x, y in (x + y) % 2 == 0 ? red : blue }
    let mean = Colour(red: 100, green: 0, blue: 50)
    #expect(Badge(chequered).cells == [mean, mean])
  }

  @Test(arguments: 1...9, 1...3)
  func `can be created from a picture of any size`(width: Int, height: Int) {
    let badge = Badge(Pixmap(width: width, height: height) { _, _ in red })
    #expect(badge.cells == [red, red])
  }

  @Test func `is drawn for each airline, and no two look the same at any color depth`() throws {
    let day = try Day.bundled()
    let pictures = BadgePainter.pictures(of: day.airlines.keys)
    #expect(pictures.count == 16)
    let badges = pictures.values.map { Badge($0) }
    #expect(Set(badges).count == 16)
    for depth in [ColourDepth.cube, .full] {
      #expect(Set(badges.map { $0.cells.map(depth.codes) }).count == 16)
    }
    for picture in pictures.values {
      #expect(try Pixmap(ppm: picture.ppm) == picture)
    }
  }
}

@Suite(.fewAtOnce) struct `The colors of a terminal` {
  @Test(arguments: [
    (["NO_COLOR": "1", "COLORTERM": "truecolor"], ColourDepth.none),
    (["NO_COLOR": "", "TERM": "xterm"], .eight), ([:], .eight), (["TERM": "vt220"], .eight),
    (["TERM": "linux"], .eight), (["TERM": "xterm-256color"], .cube),
    (["TERM": "tmux-256color"], .cube), (["TERM": "xterm-kitty"], .cube),
    (["TERM": "xterm", "COLORTERM": "truecolor"], .full), (["COLORTERM": "24bit"], .full),
    (["COLORTERM": "yes"], .eight), (["TERM": "xterm-direct"], .full),
  ])
  func `depend on the environment`(environment: [String: String], depth: ColourDepth) {
    #expect(ColourDepth(environment: environment) == depth)
  }

  @Test(arguments: [
    (ColourDepth.none, ""), (.eight, "37;41"), (.cube, "38;5;231;48;5;160"),
    (.full, "38;2;255;255;255;48;2;220;10;40"),
  ])
  func `are used for white letters on a dark background`(depth: ColourDepth, codes: String) {
    #expect(depth.codes(ground: Colour(red: 220, green: 10, blue: 40)) == codes)
  }

  @Test(arguments: [
    (ColourDepth.none, ""), (.eight, "30;43"), (.cube, "38;5;16;48;5;226"),
    (.full, "38;2;0;0;0;48;2;250;240;10"),
  ])
  func `are used for black letters on a light background`(depth: ColourDepth, codes: String) {
    #expect(depth.codes(ground: Colour(red: 250, green: 240, blue: 10)) == codes)
  }

  @Test func `of a cube are the nearest ones`() {
    let lights = [0, 95, 135, 175, 215, 255]
    for light in 0...255 {
      let codes = ColourDepth.cube.codes(ground: Colour(red: 0, green: 0, blue: UInt8(light)))
      let step = codes.split(separator: ";").last.flatMap { Int($0) }.map { $0 - 16 } ?? -1
      let distances = lights.map { abs($0 - light) }
      #expect(distances[step] == distances.min())
    }
  }

  @Test func `go round the wheel`() {
    #expect(Colour(hue: 0, brightness: 250) == Colour(red: 250, green: 50, blue: 50))
    #expect(Colour(hue: 120, brightness: 250) == Colour(red: 50, green: 250, blue: 50))
    #expect(Colour(hue: -120, brightness: 250) == Colour(red: 50, green: 50, blue: 250))
    #expect(Colour(hue: 60, brightness: 255) == Colour(red: 255, green: 255, blue: 51))
    for hue in 0..<720 {
      #expect(Colour(hue: hue, brightness: 255) == Colour(hue: hue % 360, brightness: 255))
    }
  }
}
