// Copies the package, as far as git tracks it, with the bugs of .ci/mutations.txt planted in it, each behind a switch.
// Usage: swift .ci/mutations.swift FOLDER ONLY, where FOLDER is empty or a copy that it has made before, and ONLY is
// empty or numbers with commas in between. Without arguments it checks the entries, and copies nothing.
//
// The environment variable PLEXUS_PLANTED has the number of the bug that is planted while a program runs. Prints the
// number, the file, the bug and the tests of each entry on one line, with tabs in between.

import Foundation

struct Entry {
  let number: Int
  var file = ""
  /// The place of the text in the file without indentation, in bytes.
  var place = 0..<0
  var bug = ""
  var tests = ""
  var text: [Substring] = []
  var replacement: [Substring] = []

  var module: String { String(file.split(separator: "/").dropFirst().first ?? "") }
  var isInLua: Bool { file.hasSuffix(".lua") }

  /// Returns what stands in the copy in place of the text, as the file has it.
  func plant(_ text: Substring) -> String {
    // The file has the indentation of the first line.
    let replacement = String(
      replacement.joined(separator: "\n").drop { $0 == " " || $0 == "\t" }
    )
    // A program chooses one of them when it reads the text.
    if isInLua { return "\u{1}\(number)\u{2}\(replacement)\u{2}\(text)\u{1}" }
    if replacement.isEmpty { return "if !planted(\(number)) { \(text) }" }
    guard replacement.contains("planted") else {
      return "(planted(\(number)) ? (\(replacement)) : (\(text)))"
    }
    return replacement.replacingOccurrences(of: "planted", with: "planted(\(number))")
  }
}

var problems: [String] = []

func entries(in path: String) throws -> [Entry] {
  var entries: [Entry] = []
  let content = try String(contentsOfFile: path, encoding: .utf8)
  for (index, line) in content.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
  {
    let words = line.split(separator: " ")
    let rest = words.dropFirst().joined(separator: " ")
    let last = entries.count - 1
    switch words.first {
    case nil, "#": break
    case let word? where line == word && word.allSatisfy(\.isNumber):
      entries.append(Entry(number: Int(word) ?? 0))
    case "bug:" where last >= 0: entries[last].bug = rest
    case "tests:" where last >= 0: entries[last].tests = rest
    case _ where line.hasPrefix("-") && last >= 0: entries[last].text.append(line.dropFirst())
    case _ where line.hasPrefix("+") && last >= 0:
      entries[last].replacement.append(line.dropFirst())
    case _ where line.hasPrefix("#"): break
    default: problems.append("\(path):\(index + 1): not a line of an entry: \(line)")
    }
  }
  for (number, group) in Dictionary(grouping: entries, by: \.number) where group.count > 1 {
    problems.append("\(path): there are \(group.count) entries with the number \(number)")
  }
  return entries
}

/// Returns lines without the whitespace at their beginning.
func unindented(_ lines: [Substring]) -> String {
  lines.map { $0.drop { $0 == " " || $0 == "\t" } }.joined(separator: "\n")
}

/// Returns the offsets at which a text occurs in another one.
func offsets(of text: String, in whole: String) -> [Int] {
  // The methods of strings take a hundred times as long.
  whole.withCString { start in
    var offsets: [Int] = []
    var position = start
    while !text.isEmpty, let found = strstr(position, text) {
      offsets.append(UnsafePointer(found) - start)
      position = UnsafePointer(found) + 1
    }
    return offsets
  }
}

/// Notes the file and the place of each entry, whose text occurs once in all files.
func locate(_ entries: inout [Entry], in sources: [String: String]) {
  var whole = ""
  var files: [(path: String, offset: Int)] = []
  for (path, source) in sources {
    files.append((path, whole.utf8.count))
    // No text goes on in the next file.
    whole +=
      unindented(source.split(separator: "\n", omittingEmptySubsequences: false)) + "\u{1}\n"
  }
  for index in entries.indices {
    let text = unindented(entries[index].text)
    let found = offsets(of: text, in: whole).compactMap { offset in
      files.last { $0.offset <= offset }.map { (path: $0.path, offset: offset - $0.offset) }
    }
    guard found.count == 1 else {
      problems.append(
        "entry \(entries[index].number) of .ci/mutations.txt is out of date: its text occurs \(found.count) times, and has "
          + "to occur once. Change the lines that begin with \"-\":\n  "
          + entries[index].text.joined(separator: "\n  ")
          + found.map { "\n  in \($0.path)" }.sorted().joined()
      )
      continue
    }
    entries[index].file = found[0].path
    entries[index].place = found[0].offset..<found[0].offset + text.utf8.count
  }
}

/// Returns the range in a source text of a place in it without indentation.
func range(of place: Range<Int>, in source: String) -> Range<String.Index> {
  var (index, offset, isIndentation) = (source.startIndex, 0, true)
  var begin = index
  while offset < place.upperBound {
    let byte = source.utf8[index]
    isIndentation = isIndentation && (byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t"))
    if !isIndentation {
      if offset == place.lowerBound { begin = index }
      offset += 1
      isIndentation = byte == UInt8(ascii: "\n")
    }
    index = source.utf8.index(after: index)
  }
  return begin..<index
}

/// The source text of a file with its bugs planted.
func planted(_ source: String, _ entries: [Entry]) -> String {
  let entries = entries.sorted { $0.place.lowerBound < $1.place.lowerBound }
  for (one, next) in zip(entries, entries.dropFirst())
  where next.place.lowerBound < one.place.upperBound {
    problems.append("entries \(one.number) and \(next.number) overlap in \(one.file)")
  }
  guard problems.isEmpty else { return source }
  var result = source
  for entry in entries.reversed() {
    let range = range(of: entry.place, in: source)
    result.replaceSubrange(range, with: entry.plant(source[range]))
  }
  return result
}

/// What the plants of a module call.
let helper = """
  #if canImport(Darwin)
  internal import Darwin
  #elseif canImport(Glibc)
  internal import Glibc
  #elseif canImport(Musl)
  internal import Musl
  #endif

  /// The number of the bug that is planted; 0 if there is none.
  @usableFromInline let plantedNumber = unsafe getenv("PLEXUS_PLANTED").flatMap { unsafe Int(String(cString: $0)) } ?? 0

  @usableFromInline func planted(_ number: Int) -> Bool { number == plantedNumber }

  """

/// What reads the texts in Lua of a module, of which there is one in its sources; in the copy it chooses.
let reader = "String(decoding: file, as: UTF8.self)"
let luaHelper = """

  func planted(in text: String) -> String {
    let parts = text.split(separator: "\\u{1}", omittingEmptySubsequences: false)
    return parts.enumerated().map { index, part in
      guard index % 2 == 1 else { return part }
      let plant = part.split(separator: "\\u{2}", omittingEmptySubsequences: false)
      return planted(Int(plant[0]) ?? 0) ? plant[1] : plant[2]
    }
    .joined()
  }

  """

func output(of arguments: [String]) throws -> String {
  let process = Process()
  let pipe = Pipe()
  process.executableURL = URL(filePath: "/usr/bin/env")
  process.arguments = arguments
  process.standardOutput = pipe
  try process.run()
  let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return String(decoding: data, as: UTF8.self)
}

let arguments = CommandLine.arguments.dropFirst()
let only = Set(arguments.dropFirst().joined().split(separator: ",").compactMap { Int($0) })
var all = try entries(in: ".ci/mutations.txt")
for number in only.sorted() where !all.contains(where: { $0.number == number }) {
  problems.append("there is no entry \(number)")
}

// The benchmarks, the examples and the integrations are packages of their own.
let tracked = try output(of: [
  "git", "ls-files", "-z", "Package.swift", "Sources", "Tests", ":!Tests/Benchmarks",
  ":!Tests/Examples", ":!Tests/Integrations",
])
.split(separator: "\0").map(String.init)
.filter { FileManager.default.fileExists(atPath: $0) }
var contents: [String: Data] = [:]
for path in tracked { contents[path] = try Data(contentsOf: URL(filePath: path)) }
let sources = contents.filter { path, _ in
  path.hasPrefix("Sources/") && [".swift", ".lua"].contains(where: path.hasSuffix)
}
.mapValues { String(decoding: $0, as: UTF8.self) }
locate(&all, in: sources)

// All of them are planted, so that another choice needs no other build.
for (path, entries) in Dictionary(grouping: all, by: \.file) {
  guard let source = sources[path] else { continue }
  contents[path] = Data(planted(source, entries).utf8)
}
let testFiles = tracked.filter { $0.hasPrefix("Tests/") }.compactMap {
  $0.split(separator: "/").last
}
for entry in all {
  if entry.bug.isEmpty || entry.tests.isEmpty {
    problems.append("entry \(entry.number) has no bug, or no tests")
  }
  for name in entry.tests.split(separator: " ")
  where !testFiles.contains(where: { $0.contains(name) }) {
    problems.append("entry \(entry.number) is out of date: no test file has \(name) in its name")
  }
  if !entry.file.isEmpty {
    contents["Sources/\(entry.module)/PlantedBug.swift"] = Data(helper.utf8)
  }
}
for module in Set(all.lazy.filter(\.isInLua).map(\.module)) {
  let readers = contents.compactMap { path, data in
    let source = path.hasPrefix("Sources/\(module)/") ? String(decoding: data, as: UTF8.self) : ""
    return source.contains(reader) ? (path, source) : nil
  }
  guard readers.count == 1, let (path, source) = readers.first else {
    problems.append("\(readers.count) files of \(module) have \(reader), which reads texts in Lua")
    continue
  }
  contents[path] = Data(
    source.replacingOccurrences(of: reader, with: "planted(in: \(reader))").utf8
  )
  contents["Sources/\(module)/PlantedBug.swift"]?.append(contentsOf: luaHelper.utf8)
}
guard problems.isEmpty else {
  print(problems.joined(separator: "\n"))
  exit(1)
}
guard let path = arguments.first else { exit(0) }

// What has not changed is left alone, so that it is not compiled again. Only files of an earlier copy are removed.
let folder = URL(filePath: path, directoryHint: .isDirectory)
let list = folder.appending(path: ".planted")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let isEmpty = try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty
guard isEmpty || FileManager.default.fileExists(atPath: list.path) else {
  print("\(folder.path) is neither empty nor a copy with planted bugs: choose another folder")
  exit(1)
}
var former = Set(
  (try? String(contentsOf: list, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
)
try contents.keys.sorted().joined(separator: "\n").write(
  to: list,
  atomically: true,
  encoding: .utf8
)
for (path, data) in contents {
  let file = folder.appending(path: path)
  former.remove(path)
  if (try? Data(contentsOf: file)) == data { continue }
  try FileManager.default.createDirectory(
    at: file.deletingLastPathComponent(),
    withIntermediateDirectories: true
  )
  try data.write(to: file)
}
for path in former { try? FileManager.default.removeItem(at: folder.appending(path: path)) }

for entry in all.sorted(by: { $0.number < $1.number })
where only.isEmpty || only.contains(entry.number) {
  print(entry.number, entry.file, entry.bug, entry.tests, separator: "\t")
}
