import Foundation
import Testing

@testable import PlexusInspector

@Suite struct `Texts on the page of an inspector` {
  private struct Row: Equatable {
    var name: String
    var tags: Set<String> = []
    var note: String?
  }

  private enum Mode: Equatable {
    case idle
    case shows(Row)
    case both(Int, name: String)
  }

  private struct Screen {
    var rows: [Int: Row] = [:]
    var list: [Row] = []
    var mode = Mode.idle
    var pair = (1, "one")
    let made = Reference()
  }

  private final class Reference: Sendable {}

  private enum Talkative: CustomDebugStringConvertible {
    case only

    var debugDescription: String { "secret" }
  }

  private enum Mirrored: CustomReflectable {
    case only

    var customMirror: Mirror { Mirror(self, children: ["secret": 1], displayStyle: .enum) }
  }

  private let shown = Disclosure(showsValues: true)
  private let hidden = Disclosure(showsValues: false)

  private func lines(_ before: Screen, _ after: Screen) -> [String] {
    StateDifference(before, after, shown).lines.map { line in
      "\(line.path): \(line.before ?? "-") > \(line.after ?? "-")"
    }
  }

  /// A collection whose elements cannot be counted.
  private struct Endless: Collection {
    let startIndex = 0
    var endIndex: Int { fatalError("It is counted") }
    func index(after index: Int) -> Int { index + 1 }
    subscript(_: Int) -> Int { 0 }
  }

  /// A structure whose mirror has a label that says too much.
  private struct Labelled: CustomReflectable {
    let number: Int
    var customMirror: Mirror { Mirror(self, children: ["secret": number], displayStyle: .struct) }
  }

  @Test func `sizes are counted only where that is quick and safe`() {
    #expect(hidden.text(of: [1, 2]) == "Array<Int>, 2 elements")
    #expect(hidden.text(of: ["a": 1]).hasSuffix("1 elements"))
    #expect(hidden.text(of: Data([1])) == "Data, 1 elements")
    #expect(hidden.text(of: 0...Int.max).hasSuffix("bytes"))
    #expect(hidden.text(of: Endless()).hasSuffix("bytes"))
  }

  @Test func `a text is short in bytes, too, whatever its characters have`() {
    let marks = "a" + String(repeating: "\u{301}", count: 100_000)
    #expect(marks.shortened(to: 100).utf8.count <= 400 + "…".utf8.count)
    #expect(String(repeating: "a", count: 101).shortened(to: 100).count == 101)
    #expect("héllo".shortened(to: 5) == "héllo")
    #expect(String(repeating: "é", count: 5).shortened(to: 4) == "éééé…")
  }

  @Test func `a change of a value with a mirror of its own shows none of its labels`() {
    let lines = StateDifference([Labelled(number: 1)], [Labelled(number: 2)], hidden).lines
    #expect(lines.count == 1)
    #expect(!lines.contains { $0.path.contains("secret") })
    #expect(StateDifference(Labelled(number: 1), Labelled(number: 2), shown).lines.count == 1)
  }

  @Test func `JSON is what a reader of JSON understands, in one line`() throws {
    let text = (0..<0x3000).compactMap(Unicode.Scalar.init).map(String.init).joined() + "\u{1F600}"
    let json: JSON = [
      "text": .string(text), "numbers": [1, .decimal(1.25), .decimal(.infinity), .int(.max)],
      "flags": [true, false, .null], "nested": ["a": ["b": []]],
    ]
    #expect(!json.bytes.contains { $0 < 0x20 })
    let value = try JSONSerialization.jsonObject(with: Data(json.bytes)) as? [String: Any]
    #expect(value?["text"] as? String == text)
    #expect((value?["numbers"] as? [Any])?.count == 4)
    #expect((value?["numbers"] as? [Any])?[1] as? Double == 1.25)
    #expect((value?["numbers"] as? [Any])?[2] is NSNull)
    #expect(value?["nested"] is [String: [String: [Any]]])
  }

  @Test func `values have texts of a bounded length`() {
    #expect(shown.text(of: "plain") == "plain")
    #expect(shown.text(of: Row(name: "Ada")) == "Row(name: \"Ada\", tags: [], note: nil)")
    #expect(shown.text(of: Mode.both(1, name: "x")) == "both(1, name: \"x\")")
    #expect(shown.text(of: Mode.shows(Row(name: "y"))).hasPrefix("shows(Row(name: \"y\""))
    #expect(shown.text(of: [1, 2, 3]) == "[1, 2, 3]" && shown.text(of: ["a": 1]) == "[\"a\": 1]")
    let long = shown.text(of: Array(repeating: "0123456789", count: 1_000_000), limit: 100)
    #expect(long.count == 101 && long.hasSuffix("…"))
    let text = shown.text(of: String(repeating: "0", count: 10_000_000), limit: 100)
    #expect(text.count == 101 && text.hasSuffix("…"))
  }

  @Test func `without values, types and sizes are shown, and names of cases`() {
    #expect(hidden.text(of: "secret") == "String, 6 bytes")
    #expect(hidden.text(of: [1, 2]) == "Array<Int>, 2 elements")
    #expect(hidden.text(of: 7) == "Int, 8 bytes")
    #expect(hidden.name(of: Mode.idle) == ".idle")
    #expect(hidden.name(of: Mode.shows(Row(name: "secret"))) == ".shows")
    #expect(hidden.name(of: Row(name: "secret")).hasPrefix("Row, "))
    #expect(hidden.text(of: CocoaError(.fileNoSuchFile)) == "CocoaError")
    #expect(hidden.name(of: Talkative.only) == "Talkative")
    #expect(hidden.name(of: Mirrored.only).hasPrefix("Mirrored, "))
  }

  @Test func `a difference has the parts that were changed, added and removed`() {
    var screen = Screen()
    let empty = screen
    #expect(lines(empty, empty) == [])
    screen.rows[3] = Row(name: "three")
    #expect(lines(empty, screen) == ["rows[3]: - > Row(name: \"three\", tags: [], note: nil)"])
    var next = screen
    next.rows[3]?.name = "drei"
    next.rows[3]?.tags = ["a"]
    next.rows[3]?.note = "n"
    next.pair.1 = "eins"
    #expect(
      lines(screen, next) == [
        "rows[3].name: three > drei", "rows[3].tags: - > a", "rows[3].note: nil > n",
        "pair.1: one > eins",
      ]
    )
    next = screen
    next.list = [Row(name: "x"), Row(name: "y")]
    var last = next
    last.list[1].name = "z"
    #expect(lines(next, last) == ["list[1].name: y > z"])
    last = next
    last.list.removeLast()
    #expect(lines(next, last) == ["list[1]: Row(name: \"y\", tags: [], note: nil) > -"])
    last = next
    last.mode = .shows(Row(name: "q"))
    #expect(lines(next, last).first?.hasPrefix("mode: idle > shows(Row(") == true)
    next = last
    next.mode = .shows(Row(name: "r"))
    #expect(lines(last, next) == ["mode.shows.name: q > r"])
  }

  @Test func `a difference without values has no keys of dictionaries`() {
    var screen = Screen()
    screen.rows[4711] = Row(name: "secret")
    var next = screen
    next.rows[4711]?.name = "secret, too"
    let difference = StateDifference(screen, next, hidden)
    #expect(difference.lines.map(\.path) == ["rows[Int].name"])
    #expect(difference.lines[0].before == "String, 6 bytes")
    #expect(difference.lines[0].after == "String, 11 bytes")
  }

  @Test func `a difference is bounded`() {
    let before = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ($0, $0) })
    let difference = StateDifference(before, before.mapValues { $0 + 1 }, shown)
    #expect(difference.lines.count == 100 && difference.isCut)
    let long = Array(0..<1_000_000)
    #expect(StateDifference(long, long, shown).lines.isEmpty)
    #expect(StateDifference(long, long + [1], shown).lines.count <= 1)
    #expect(StateDifference(1, 2, shown).lines.map(\.path) == ["state"])
  }

  @Test(arguments: [
    ("", true), ("ADA", true), ("a", true), ("lovelace", true), ("LoveLacf", false),
    ("aada", false),
    ("é", true), ("É", false), ("Ada Lovelace é!", false),
  ])
  func `keys are searched regardless of the case of letters`(part: String, isFound: Bool) {
    #expect("Ada Lovelace é".containsIgnoringCase(part) == isFound)
    #expect("".containsIgnoringCase(part) == part.isEmpty)
  }
}
