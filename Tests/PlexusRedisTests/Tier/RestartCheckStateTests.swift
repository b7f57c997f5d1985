import Testing

@testable import PlexusRedis

struct `The check whether a server has restarted` {
  private func check(
    space: String = "s",
    in database: Int = 0,
    skipping skipped: UInt64 = 99
  ) -> RestartCheckState {
    RestartCheckState(
      TierNames(space: space, schema: "1"),
      in: database,
      knowledge: ["n", "1-a", 5],
      skipping: skipped
    )
  }

  private func words(_ command: RedisCommand?) -> [Substring] {
    String(decoding: command?.encoded ?? [], as: UTF8.self).split(separator: "\r\n")
  }

  private func text(_ text: String) -> RESPValue { .string(Array(text.utf8)) }

  private func error(_ text: String) -> RESPValue { .error(RedisError(text.utf8)) }

  /// The digest of the sign that is looked for, after the reply to the first command.
  private func sign(_ check: RestartCheckState, after list: RESPValue) -> String? {
    var check = check
    #expect(check.answer(list) == nil)
    #expect(words(check.command).contains("EVALSHA"))
    return words(check.command).first { $0.count == 40 }.map { "\($0)" }
  }

  @Test func `a server with the sign gets no further command`() {
    var check = check()
    #expect(words(check.command).suffix(1) == ["{s}:2:schemas"])
    #expect(check.answer(text("5:10-20 1=30")) == nil)
    #expect(words(check.command).contains("EVALSHA"))
    #expect(check.answer(text("x")) == nil)
    #expect(check.command == nil)
  }

  @Test func `a server without the sign notes the restart before it gets the sign`() throws {
    var check = check()
    #expect(check.answer(.null) == nil)
    #expect(check.answer(error("NOSCRIPT No matching script.")) == nil)
    let note = words(check.command)
    #expect(note.contains("EVAL"))
    #expect(note.suffix(7) == ["n", "$3", "1-a", "$1", "5", "$2", "99"])
    #expect(check.answer(text("77")) == nil)
    #expect(words(check.command).contains("LOAD"))
    let source = try #require(words(check.command).last)
    let later = sign(self.check(), after: text("5:10-77 1=30"))
    #expect(ScriptDigest.text(of: "\(source)") == later)
    #expect(check.answer(text("digest")) == nil)
    #expect(check.command == nil)
  }

  @Test func `each space, database and restart has a sign of its own`() {
    let lists = ["5 1=30", "5:10-20 1=30", "5:30-40:10-20 1=30"].map(text)
    var signs = lists.map { sign(check(), after: $0) }
    signs += [
      sign(check(space: "t"), after: lists[1]), sign(check(in: 1), after: lists[1]),
    ]
    #expect(Set(signs).count == 5)
    // Damage is no restart.
    for list in [.null, text("x"), text(""), .integer(1), error("WRONGTYPE no text")] {
      #expect(sign(check(), after: list) == signs[0])
    }
  }

  @Test func `a space that cannot be checked is not used`() {
    for refusal in ["NOPERM no rights", "NOREPLICAS Not enough good replicas to write."] {
      var answers: [RESPValue] = [text("5"), error("NOSCRIPT No matching script."), text("77")]
      for count in 0..<4 {
        var check = check()
        for answer in answers.prefix(count) { #expect(check.answer(answer) == nil) }
        #expect(check.answer(error(refusal))?.description == refusal)
        #expect(check.command == nil)
      }
      answers[2] = text("-1")
      var check = check()
      for answer in answers.prefix(2) { #expect(check.answer(answer) == nil) }
      #expect(check.answer(answers[2]) != nil)
    }
  }

  @Test func `a connection is not used before the checks have ended, except without the rights`() {
    func introduction() -> IntroductionState {
      IntroductionState(
        to: .master,
        at: .unix(path: "/a"),
        nil,
        name: "n",
        checks: [check(), check(space: "t")]
      )
    }
    var state = introduction()
    let fields: [RESPValue] = [
      text("proto"), .integer(3), text("mode"), text("standalone"), text("role"), text("master"),
    ]
    #expect(state.answer(.map(fields)) == nil)
    #expect(state.answer(error("NOPERM no rights")) == nil)
    #expect(words(state.command).last == "{t}:2:schemas")
    #expect(state.answer(text("5")) == nil)
    #expect(state.answer(error("NOSCRIPT No matching script.")) == nil)
    var other = state
    #expect(state.answer(text("77")) == nil)
    #expect(state.answer(text("digest")) == nil)
    #expect(state.command == nil)
    let failure = other.answer(error("NOREPLICAS Not enough good replicas to write."))
    #expect(failure?.isTemporary == true)
  }
}
