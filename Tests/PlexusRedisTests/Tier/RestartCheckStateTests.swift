import PlexusSupport
import Testing

@testable import PlexusRedis

struct `The check whether a server has restarted` {
  private func check(
    space: String = "s",
    in database: Int = 0,
    of history: String = "",
    nonce: String = "n",
    skipping skipped: UInt64 = 99
  ) -> RestartCheckState {
    var check = RestartCheckState(
      TierNames(space: space, schema: "1"),
      in: database,
      nonce: nonce,
      knowledge: [.text(nonce), "1-a", 5],
      skipping: skipped
    )
    check.history = history
    return check
  }

  private func words(_ command: RedisCommand?) -> [Substring] {
    String(decoding: command?.encoded ?? [], as: UTF8.self).split(separator: "\r\n")
  }

  private func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  private func error(_ text: String) -> RESPValue { .error(RedisError(text.utf8)) }

  private let unknown = RESPValue.error(RedisError("NOSCRIPT No matching script.".utf8))

  /// The digest of the sign that is looked for, after the reply to the first command.
  private func sign(_ check: RestartCheckState, after list: RESPValue) -> String? {
    var check = check
    #expect(check.answer([list]) == nil)
    #expect(words(check.commands.first).contains("EVALSHA"))
    return words(check.commands.first).first { $0.count == 40 }.map { "\($0)" }
  }

  @Test func `a server with the sign gets no further command`() {
    var check = check()
    #expect(words(check.commands.first).suffix(1) == ["{s}:2:schemas"])
    #expect(check.answer([text("5/r:10-20 1=30")]) == nil)
    #expect(words(check.commands.first).contains("EVALSHA"))
    #expect(check.answer([text("x")]) == nil)
    #expect(check.commands.isEmpty)
  }

  @Test(arguments: ["", "history"])
  func `a server without the sign gets it before the restart is noted`(history: String) {
    var check = check(of: history)
    #expect(check.answer([text("5/r:10-20 1=30")]) == nil)
    #expect(check.answer([unknown]) == nil)
    // Also that of a process that may not ask for the history.
    let signs = Set(["", history])
      .map { sign(self.check(of: $0), after: text("5/n:30-40 1=30")) }
    let loaded = check.commands.dropLast().map { command in
      #expect(words(command).contains("LOAD"))
      return words(command).last.map { SHA1.hexadecimalDigest("\($0)".utf8) }
    }
    #expect(Set(loaded) == Set(signs))
    let note = words(check.commands.last)
    #expect(note.contains("EVAL"))
    #expect(note.suffix(9) == ["n", "$3", "1-a", "$1", "5", "$2", "99", "$1", "r"])
    #expect(check.answer(check.commands.map { _ in .integer(0) }) == nil)
    #expect(check.commands.isEmpty)
  }

  @Test func `a note says which one was the last, and skips nothing in a new space`() {
    let lists: [(RESPValue, String?)] = [
      (text("5/r:10-20 1=30"), "r"), (text("5/r 1=30"), "r"), (text("5/r"), "r"),
      (text("5:10-20 1=30"), ""), (text("0"), ""), (text("5/ 1=30"), ""),
      (.null, nil), (text("x"), nil), (text(""), nil), (.integer(1), nil),
      (error("WRONGTYPE no text"), nil),
    ]
    for (list, last) in lists {
      var check = check()
      #expect(check.answer([list]) == nil)
      if last == "r" { #expect(check.answer([unknown]) == nil) }
      let note = String(decoding: check.commands.last?.encoded ?? [], as: UTF8.self)
      let name = last ?? ""
      let skipped = last == nil ? "$1\r\n0" : "$2\r\n99"
      #expect(note.hasSuffix("\(skipped)\r\n$\(name.count)\r\n\(name)\r\n"))
    }
  }

  @Test func `each space, database, run and history of a server has a sign of its own`() {
    let lists = ["5/q 1=30", "5/r:10-20 1=30"].map(text)
    var signs = lists.map { sign(check(), after: $0) }
    signs += [
      sign(check(space: "t"), after: lists[1]), sign(check(in: 1), after: lists[1]),
      sign(check(of: "a"), after: lists[1]), sign(check(of: "b"), after: lists[1]),
    ]
    #expect(Set(signs).count == 6)
  }

  @Test func `a space that cannot be checked is not used`() {
    for refusal in ["NOPERM no rights", "NOREPLICAS Not enough good replicas to write."] {
      let answers: [[RESPValue]] = [[text("5/r")], [unknown], [text("digest"), error(refusal)]]
      for count in 0..<3 {
        var check = check()
        for answer in answers.prefix(count) { #expect(check.answer(answer) == nil) }
        let last = count == 2 ? answers[2] : [error(refusal)]
        #expect(check.answer(last)?.description == refusal)
        #expect(check.commands.isEmpty)
      }
    }
  }

  /// Returns an introduction that was answered up to the checks.
  private func introduction(_ checks: [RestartCheckState]) -> IntroductionState {
    var state = IntroductionState(
      to: .master,
      at: .unix(path: "/a"),
      nil,
      name: "n",
      checks: checks
    )
    let fields: [RESPValue] = [
      text("proto"), .integer(3), text("mode"), text("standalone"), text("role"), text("master"),
    ]
    #expect(state.answer([.map(fields)]) == nil)
    return state
  }

  /// The reply to the question for the server's history.
  private func info(_ history: String) -> RESPValue {
    text("# Replication\r\nrole:master\r\nmaster_replid:\(history)\r\nmaster_replid2:0\r\n")
  }

  @Test func `a connection is not used before the checks have ended, except without the rights`() {
    var state = introduction([check(), check(space: "t")])
    #expect(state.next.map { words($0).last } == ["{s}:2:schemas", "{t}:2:schemas", "replication"])
    let noRights = error("NOPERM no rights")
    #expect(state.answer([noRights, text("5/r"), noRights]) == nil)
    #expect(state.checks?.history == "")
    #expect(state.next.count == 2)
    #expect(state.answer([unknown, noRights]) == nil)
    var other = state
    #expect(state.answer([text("digest"), .integer(1), noRights]) == nil)
    #expect(state.next.isEmpty)
    // The space without rights is checked later.
    #expect(state.checks?.checked == [check(space: "t").space])
    #expect(state.checks?.missingRight?.kind == .permission)
    let refusal = error("NOREPLICAS Not enough good replicas to write.")
    #expect(other.answer([text("digest"), refusal, noRights])?.isTemporary == true)
  }

  @Test(arguments: [0, 1, 100])
  func `the checks of any number of spaces take three exchanges at most`(count: Int) {
    var state = introduction((0..<count).map { check(space: "\($0)") })
    let info = info("ab12")
    #expect(state.next.count == count + 1)
    #expect(state.answer(Array(repeating: text("5/r:10-20"), count: count) + [info]) == nil)
    #expect(state.checks?.history == "ab12")
    let expected = (0..<count)
      .map { sign(check(space: "\($0)", of: "ab12"), after: text("5/r:10-20")) }
    #expect(zip(state.next, expected).allSatisfy { words($0).contains(Substring($1 ?? "")) })
    guard count > 0 else {
      #expect(state.next.isEmpty)
      return
    }
    // Every other space has its sign.
    let replies = (0..<count).map { $0.isMultiple(of: 2) ? unknown : text("x") }
    #expect(state.answer(replies + [info]) == nil)
    let rest = 3 * ((count + 1) / 2)
    #expect(state.next.count == rest + 1)
    #expect(state.answer(Array(repeating: text("digest"), count: rest) + [info]) == nil)
    #expect(state.next.isEmpty)
    #expect(state.checks?.checked.count == count)
  }

  /// The replies to the exchanges of a check that notes a run.
  private var exchanges: [[RESPValue]] {
    [[text("5/r")], [unknown], [text("digest"), text("digest"), .integer(1)]]
  }

  @Test(arguments: 1...2, ["cd34", nil])
  func `a server that begins another history during the checks is not used`(
    exchange: Int,
    history: String?
  ) {
    var state = introduction([check()])
    for replies in exchanges.prefix(exchange) {
      #expect(state.answer(replies + [info("ab12")]) == nil)
    }
    let last = history.map { info($0) } ?? error("NOPERM no rights")
    #expect(state.answer(exchanges[exchange] + [last])?.isTemporary == true)
  }

  @Test(arguments: [
    "LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script.",
    "MISCONF Errors writing to the AOF file", "OOM command not allowed",
    "READONLY You can't write against a read only replica.",
  ])
  func `a space does not count as checked if the server refuses any command of its check`(
    refusal: String
  ) {
    for exchange in 0..<3 {
      for index in 0...exchanges[exchange].count {
        var state = introduction([check()])
        for replies in exchanges.prefix(exchange) {
          #expect(state.answer(replies + [info("ab12")]) == nil)
        }
        var replies = exchanges[exchange] + [info("ab12")]
        replies[index] = error(refusal)
        #expect(state.answer(replies) != nil, "\(exchange) \(index)")
        #expect(state.checks?.checked == [])
      }
    }
  }
}
