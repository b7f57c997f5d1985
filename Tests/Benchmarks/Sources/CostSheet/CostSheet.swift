import Foundation

/// Counts the instructions of one call of the public operations of the library.
@main
struct CostSheet {
  static func main() {
    var arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "--operation" { carryOut(arguments) }
    do {
      if arguments.contains("--help") { return print(usage) }
      let isGate = takeFlag("--gate", from: &arguments)
      let json = try takeValue("--json", from: &arguments)
      let isList = arguments.first == "list"
      if isList { arguments.removeFirst() }
      if let option = arguments.first(where: { $0.hasPrefix("--") }) {
        throw UsageError("There is no option \(option).")
      }
      let chosen = try choose(arguments, onlyGoals: isGate)
      if isList {
        for operation in chosen { print(operation.name) }
        return
      }
      try measure(chosen, isGate: isGate, json: json)
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(error is UsageError ? 64 : 1)
    }
  }

  private static let usage = """
    usage: CostSheet [--gate] [--json FILE] [NAME ...]
           CostSheet list [NAME ...]

    Counts the instructions and the allocations of one call of each operation whose name begins with
    one of those given, or of all. valgrind counts them on one processor, in two processes, one of which
    carries out the operation three times as often: the difference is the operation, without the start of
    a process and without what has to be set up. The counts do not depend on how busy the machine is.

    The operations of the first part have a goal: the highest acceptable number of instructions. The
    second part lists the other operations, so that every change of a cost can be seen.

    Without valgrind nothing is counted, and the exit code is 0.

    --gate         counts only operations with a goal; the exit code is 1 if one is not met
    --json FILE    writes the counts to a file
    """

  // MARK: - One process

  /// Runs an operation, in a separate process under valgrind.
  private static func carryOut(_ arguments: [String]) -> Never {
    guard arguments.count == 3, let count = Int(arguments[2]),
      let operation = allOperations.first(where: { $0.name == arguments[1] })
    else {
      FileHandle.standardError.write(Data("There is no operation \(arguments.dropFirst()).\n".utf8))
      exit(64)
    }
    Task.detached {
      do {
        try await operation.body(count)
        // The tasks that the operation has started are part of its cost.
        await settle()
        print(Callgrind.threadCount)
        fflush(nil)
        // Not exit(): other threads may still run, and nothing needs cleanup.
        _exit(0)
      } catch {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(1)
      }
    }
    // dispatchMain() would end the main thread, which crashes valgrind.
    while true { RunLoop.main.run() }
  }

  // MARK: - All processes

  private static func choose(_ prefixes: [String], onlyGoals: Bool) throws -> [Operation] {
    precondition(
      Set(allOperations.map(\.name)).count == allOperations.count,
      "A name is used twice"
    )
    let chosen = allOperations.filter { operation in
      (!onlyGoals || operation.goal != nil)
        && (prefixes.isEmpty || prefixes.contains { operation.name.hasPrefix($0) })
    }
    guard !chosen.isEmpty else {
      throw UsageError("No operation begins with \(prefixes.joined(separator: " or ")).")
    }
    return chosen
  }

  private static func measure(_ operations: [Operation], isGate: Bool, json: String?) throws {
    guard let callgrind = Callgrind() else {
      return print("note: valgrind is not installed, so that no cost is counted")
    }
    var rows: [Row] = []
    print(Row.header)
    for operation in operations {
      do {
        let cost = try callgrind.cost(of: operation)
        rows.append(Row(name: operation.name, goal: operation.goal, cost: cost))
      } catch {
        rows.append(Row(name: operation.name, goal: operation.goal, failure: "\(error)"))
      }
      print(rows[rows.count - 1])
      fflush(nil)
    }
    if let json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      try encoder.encode(rows).write(to: URL(fileURLWithPath: json))
    }
    let (met, notMet) = (rows.count { $0.isMet == true }, rows.count { $0.isMet == false })
    let failed = rows.count { $0.failure != nil }
    print("note: \(met) goals met, \(notMet) not met\(failed > 0 ? ", \(failed) not counted" : "")")
    if failed > 0 || isGate && notMet > 0 { exit(1) }
  }

  private static func takeFlag(_ flag: String, from arguments: inout [String]) -> Bool {
    guard let index = arguments.firstIndex(of: flag) else { return false }
    arguments.remove(at: index)
    return true
  }

  private static func takeValue(_ option: String, from arguments: inout [String]) throws -> String?
  {
    guard let index = arguments.firstIndex(of: option) else { return nil }
    guard index + 1 < arguments.count else { throw UsageError("\(option) needs a value.") }
    defer { arguments.removeSubrange(index...index + 1) }
    return arguments[index + 1]
  }
}

/// A row of the sheet.
private struct Row: Encodable, CustomStringConvertible {
  let name: String
  let goal: Int?
  var cost: Cost?
  var failure: String?

  /// Whether the goal is met; `nil` without a goal or a cost.
  var isMet: Bool? {
    guard let goal, let cost else { return nil }
    return cost.instructions.rounded() <= Double(goal)
  }

  static let header = line("operation", "now", "mallocs", "goal", "")

  var description: String {
    guard let cost else { return Row.line(name, "not counted: \(failure ?? "")", "", "", "") }
    return Row.line(
      name,
      // Without "+ 0" there would be a negative zero.
      String(format: "%.0f", cost.instructions.rounded() + 0),
      String(format: "%.2f", (cost.mallocs * 100).rounded() / 100 + 0),
      goal.map { "\($0)" } ?? "-",
      isMet.map { $0 ? "met" : "NOT met" } ?? ""
    )
  }

  private static func line(_ columns: String...) -> String {
    let widths = [54, 9, 9, 9]
    let name = columns[0].padding(
      toLength: max(widths[0], columns[0].count),
      withPad: " ",
      startingAt: 0
    )
    let numbers = zip(columns.dropFirst(), widths.dropFirst()).map { column, width in
      String(repeating: " ", count: max(0, width - column.count)) + column
    }
    let text = name + numbers.joined() + "  " + columns[4]
    return String(text.reversed().drop { $0 == " " }.reversed())
  }

  private enum CodingKeys: String, CodingKey {
    case name, goal, instructions, mallocs, isMet, failure
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encodeIfPresent(goal, forKey: .goal)
    try container.encodeIfPresent(cost?.instructions, forKey: .instructions)
    try container.encodeIfPresent(cost?.mallocs, forKey: .mallocs)
    try container.encodeIfPresent(isMet, forKey: .isMet)
    try container.encodeIfPresent(failure, forKey: .failure)
  }
}

private struct UsageError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// The sheet: first the operations with a goal and their peers, then all others.
private let allOperations: [Operation] =
  goalOperations + requestingOperations + broadcastingOperations + valueOperations
  + publishingOperations
  + eventOperations
  + stateOperations + timingOperations + storageOperations + networkingOperations
  + testingOperations + redisOperations
