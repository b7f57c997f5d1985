// Gathers the Swift samples of documentation comments and Markdown files into one program, each as a
// function of its own. Usage: swift .ci/samples.swift OUTPUT FILE...
//
// Samples of Markdown files are run, and so are those of comments that say what they print: see
// .ci/sample-runner.swift. Every line of output is a comment of the form // Prints "...", after the statement or on
// the next line, in which "…" at the end stands for what varies; the order is that of the output. A sample that consists of declarations is compiled only.
//
// A sample with an extension or an entry point stands at file scope instead. Lines of a package
// manifest are left out, and so are whole files, which begin with their path as a comment. Those of an
// "App" are files of their own in the folder OUTPUT.files, since they import packages of others.
//
// A sample that shows imports shows every module of ours whose types or functions it names: otherwise it
// would not compile where a reader puts it.

import Foundation

struct Sample {
  var path: String
  var line: Int
  var lines: [Substring] = []

  var isManifest: Bool {
    lines.contains { $0.hasPrefix(".package(") || $0.hasPrefix(".product(") || $0.hasPrefix("// swift-tools") }
  }

  var isFile: Bool {
    lines.first.map { $0.hasPrefix("// Sources/") || $0.hasPrefix("// Tests/") } ?? false
  }

  var imports: [Substring] { lines.filter { $0.hasPrefix("import ") } }

  var code: [Substring] { lines.filter { !$0.hasPrefix("import ") } }

  var names: Set<Substring> {
    Set(code.flatMap { $0.split { !($0.isLetter || $0.isNumber) } })
  }

  var isAtFileScope: Bool {
    let starts = ["extension ", "@main", "@Suite"]
    return lines.contains { line in starts.contains { line.hasPrefix($0) } }
  }

  /// Whether there is nothing to run.
  var consistsOfDeclarations: Bool {
    let starts = [
      " ", "//", "#", "@", "}", ")", "]", "actor ", "class ", "enum ", "extension ", "final ", "func ", "import ",
      "nonisolated ", "protocol ", "struct ",
    ]
    return lines.allSatisfy { line in line.isEmpty || starts.contains { line.hasPrefix($0) } }
  }

  /// The lines that the sample says it prints.
  var output: [Substring] {
    lines.compactMap { $0.firstMatch(of: #/// Prints "(.*)"$/#)?.1 }
  }

  /// The lines that say in another form what is printed.
  var unclearOutput: [Substring] {
    lines.filter { $0.contains(#/// (?i:prints?:? )/#) && !$0.contains(#/// Prints ".*"$/#) }
  }

  var isRun: Bool {
    !isAtFileScope && !consistsOfDeclarations && (path.hasSuffix(".md") || !output.isEmpty)
  }
}

/// The text of a documentation comment's line, or of any line in Markdown.
func text(of line: Substring, isMarkdown: Bool) -> Substring? {
  if isMarkdown { return line }
  let trimmed = line.drop { $0 == " " }
  guard trimmed.hasPrefix("///") else { return nil }
  let rest = trimmed.dropFirst(3)
  return rest.hasPrefix(" ") ? rest.dropFirst() : rest
}

func samples(in path: String) throws -> [Sample] {
  var found: [Sample] = []
  var current: Sample?
  let content = try String(contentsOfFile: path, encoding: .utf8)
  for (index, line) in content.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
    guard let text = text(of: line, isMarkdown: path.hasSuffix(".md")) else {
      current = nil
      continue
    }
    let fence = text.drop { $0 == " " }
    if current == nil, fence == "```swift" {
      current = Sample(path: path, line: index + 2)
    } else if fence.hasPrefix("```"), let sample = current {
      found.append(sample)
      current = nil
    } else {
      current?.lines.append(text)
    }
  }
  return found
}

/// The types and functions at the top of a module, from its public interface.
func declarations(of module: String) throws -> Set<Substring> {
  let kinds: Set<Substring> = ["actor", "class", "enum", "func", "protocol", "struct"]
  let interface = try String(contentsOfFile: ".ci/api/\(module).swift", encoding: .utf8)
  let lines = interface.split(separator: "\n").filter { !$0.hasPrefix(" ") && !$0.hasPrefix("//") }
  return Set(lines.compactMap { line -> Substring? in
    let words = line.split(separator: " ")
    guard let kind = words.firstIndex(where: kinds.contains), kind + 1 < words.count else { return nil }
    return words[kind + 1].prefix { $0.isLetter || $0.isNumber }
  })
}

let arguments = Array(CommandLine.arguments.dropFirst())
let all = try arguments.dropFirst().flatMap(samples(in:)).filter { !$0.isManifest }
let found = all.filter { !$0.isFile }
let files = all.filter { $0.lines.first?.hasPrefix("// Sources/App/") ?? false }
let modules = ["Plexus", "PlexusNetworking", "PlexusStorage", "PlexusTesting"]
var imports: Set<Substring> = ["import LoopbackOrigin"]
var isIncomplete = false
for module in modules {
  let line = Substring("import \(module)")
  imports.insert(line)
  let declared = try declarations(of: module)
  for sample in found where !sample.imports.isEmpty && !sample.imports.contains(line) {
    let names = sample.names.intersection(declared).sorted().joined(separator: ", ")
    guard !names.isEmpty else { continue }
    print("\(sample.path):\(sample.line): there is no \(line), which has \(names)")
    isIncomplete = true
  }
}
for sample in found {
  for line in sample.unclearOutput {
    print("\(sample.path):\(sample.line): not of the form // Prints \"...\": \(line)")
    isIncomplete = true
  }
  if !sample.isRun, !sample.output.isEmpty {
    print("\(sample.path):\(sample.line): says what it prints, and has no statement to run")
    isIncomplete = true
  }
}
guard !isIncomplete else { exit(1) }

var output: [String] = []
for (number, sample) in found.enumerated() {
  imports.formUnion(sample.imports)
  if !sample.isAtFileScope { output.append("func sample\(number)() async throws {") }
  output.append("#sourceLocation(file: \"\(sample.path)\", line: \(sample.line))")
  output += sample.code.map(String.init)
  output.append("#sourceLocation()")
  if sample.isRun { output.append("  await endOfSample()") }
  if !sample.isAtFileScope { output.append("}") }
}
output.append("let runnableSamples: [RunnableSample] = [")
for (number, sample) in found.enumerated() where sample.isRun {
  let lines = sample.output.map { "#\"\($0)\"#" }.joined(separator: ", ")
  output.append(
    "  RunnableSample(place: \"\(sample.path):\(sample.line)\", output: [\(lines)], body: sample\(number)),"
  )
}
output.append("]")
// What a platform has not is in samples only between `#if canImport` and `#endif`.
let header = imports.sorted().flatMap { line in
  ["#if canImport(\(line.dropFirst("import ".count)))", String(line), "#endif"]
}
try (header + output).joined(separator: "\n").write(toFile: arguments[0], atomically: true, encoding: .utf8)
let folder = arguments[0] + ".files"
try? FileManager.default.removeItem(atPath: folder)
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
for (number, file) in files.enumerated() {
  let location = "#sourceLocation(file: \"\(file.path)\", line: \(file.line))"
  try ([location] + file.lines.map(String.init)).joined(separator: "\n")
    .write(toFile: "\(folder)/\(number).swift", atomically: true, encoding: .utf8)
}
let run = found.filter(\.isRun)
let checked = run.filter { !$0.output.isEmpty }
print(
  "note: \(found.count) samples compiled, \(run.count) of them run, \(checked.count) with the output that they name; "
    + "\(files.count) files of a server compiled"
)
