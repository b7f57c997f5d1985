// Draws the departure board as an SVG for the README. Usage: swift .ci/picture.swift FRAMES OUTPUT.svg
//
// FRAMES is what the board writes to a terminal, for instance by
//   script -qfc "stty cols 102 rows 24; .build/debug/DepartureBoard --speed 900 --until 11:20" FRAMES
// The last frame but one is drawn, since the last one can be cut off.
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 3, let data = FileManager.default.contents(atPath: arguments[1]) else {
  print("usage: swift .ci/picture.swift FRAMES OUTPUT.svg")
  exit(2)
}
let frames = String(decoding: data, as: UTF8.self)
  .components(separatedBy: "\u{1B}[?2026h\u{1B}[H")
  .dropFirst()
  .compactMap { $0.components(separatedBy: "\u{1B}[J\u{1B}[?2026l").first }
guard let frame = frames.dropLast().last else {
  print("\(arguments[1]) has no frames")
  exit(1)
}

struct Style: Equatable {
  var isBold = false
  var isFaint = false
  var foreground: String?
  var background: String?

  mutating func apply(_ codes: [Int]) {
    let names = [31: "#ff7b72", 32: "#7ee787", 33: "#e3b341"]
    var rest = codes[...]
    while let code = rest.popFirst() {
      switch code {
      case 0: self = Style()
      case 1: isBold = true
      case 2: isFaint = true
      case 38, 48:
        // A color of the palette, whose numbers from 16 are those of a cube of six by six by six.
        guard rest.popFirst() == 5, let number = rest.popFirst(), number >= 16 else { return }
        let levels = [0, 95, 135, 175, 215, 255]
        let parts = [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6]
        let color = "#" + parts.map { String(format: "%02x", levels[$0]) }.joined()
        if code == 38 { foreground = color } else { background = color }
      default: foreground = names[code] ?? foreground
      }
    }
  }
}

/// The characters of a line, each with its style.
func cells(_ line: String) -> [(Character, Style)] {
  var cells: [(Character, Style)] = []
  var style = Style()
  var rest = Substring(line)
  while let character = rest.popFirst() {
    guard character == "\u{1B}" else {
      if !character.isNewline { cells.append((character, style)) }
      continue
    }
    let codes = rest.dropFirst().prefix { $0.isNumber || $0 == ";" }
    rest = rest.dropFirst(1 + codes.count)
    if rest.popFirst() == "m" { style.apply(codes.split(separator: ";").compactMap { Int($0) }) }
  }
  return cells
}

func escaped(_ text: String) -> String {
  text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
}

let lines = frame.components(separatedBy: "\r\n").map(cells)
let (cellWidth, cellHeight, margin) = (8.4, 18.0, 14.0)
let width = Double(lines.map(\.count).max() ?? 0) * cellWidth + 2 * margin
let height = Double(lines.count) * cellHeight + 2 * margin
func number(_ value: Double) -> String { String(format: "%g", (value * 10).rounded() / 10) }

var svg = """
  <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(number(width)) \(number(height))" \
  font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" xml:space="preserve" role="img" \
  aria-label="The departure board in a terminal">
  <rect width="100%" height="100%" rx="8" fill="#0d1117"/>

  """
for (row, line) in lines.enumerated() {
  let top = margin + Double(row) * cellHeight
  var start = 0
  while start < line.count {
    let style = line[start].1
    let end = line[start...].firstIndex { $0.1 != style } ?? line.count
    let text = String(line[start..<end].map(\.0))
    let left = number(margin + Double(start) * cellWidth)
    let length = number(Double(end - start) * cellWidth)
    if let background = style.background {
      svg += """
        <rect x="\(left)" y="\(number(top))" width="\(length)" height="\(number(cellHeight))" \
        fill="\(background)"/>

        """
    }
    if !text.allSatisfy(\.isWhitespace) {
      let color = style.foreground ?? (style.isFaint ? "#7d8590" : "#e6edf3")
      let weight = style.isBold ? " font-weight=\"bold\"" : ""
      svg += """
        <text x="\(left)" y="\(number(top + 13.5))" textLength="\(length)" fill="\(color)"\(weight)>\
        \(escaped(text))</text>

        """
    }
    start = end
  }
}
try (svg + "</svg>\n").write(toFile: arguments[2], atomically: true, encoding: .utf8)
