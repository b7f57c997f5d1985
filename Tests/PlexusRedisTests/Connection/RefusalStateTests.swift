import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `The refusals of a server` {
  private let error = RedisEngineError(.outOfMemory, "no memory")
  private let other = RedisEngineError(.permission, "no right")

  @Test
  func `a refusal counts until a command of its kind succeeds, some time after the last refusal`() {
    var state = RefusalState()
    state.refuse("fills", error, at: 0)
    state.refuse("clears", other, at: 0)
    #expect(state.current == error)
    state.succeed("looks", at: 3_000_000_000)
    #expect(state.current == error)
    // Commands of one kind can be refused for some keys only.
    state.refuse("fills", error, at: 2_500_000_000)
    state.succeed("fills", at: 3_000_000_000)
    #expect(state.current == error)
    state.succeed("fills", at: 4_500_000_000)
    #expect(state.current == other)
    state.succeed("clears", at: 4_500_000_000)
    #expect(state.current == nil && state.isEmpty)
  }

  @Test(arguments: [
    ("NOPERM this user has no permissions to run the 'xgroup|create' command", "+xgroup|create"),
    ("NOPERM this user has no permissions to access one of the keys used as arguments", "~"),
    ("NOPERM this user has no permissions to access one of the channels used as arguments", "&"),
    (
      "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
      "~"
    ),
  ])
  func `the error of a refusal names the right that is missing`(reply: String, right: String) {
    let error = RedisError(reply.utf8)
    #expect(error.kind == .permission)
    #expect(RedisEngineError(error).description.contains("needs the right \(right)"))
  }

  @Test func `the error of a refusal names the commands of a script whose right is missing`() {
    let reply = RedisError("ERR The user executing the script can't run this command".utf8)
    let script = TopicScripts.join
    let error = RedisEngineError(reply, of: script.purpose, needing: script.commands)
    #expect(error.description.contains("refuses joining groups"))
    #expect(error.description.contains("+xgroup|create"))
    #expect(TierScripts.beat.commands.contains("ZADD"))
    #expect(TierScripts.beat.purpose == "heartbeats")
  }

  @Test(.guarantee(.descriptionsShowNoPassword))
  func `a password is hidden in the error of a server`() {
    var introduction = IntroductionState(
      to: .master,
      at: .unix(path: "/a"),
      RedisCredentials(user: "u", password: "secret"),
      name: "n"
    )
    let error = introduction.answer([.error(RedisError("ERR invalid password secret".utf8))])
    #expect(error.map { RedisEngineError($0).kind } == .authentication)
    #expect("\(error.map { "\($0)" } ?? "secret")".contains("secret") == false)
  }

  @Test(.guarantee(.refusalsEndWithASuccess))
  func `a kind of command that is rare is not refused any longer once it has succeeded`() {
    var state = RefusalState()
    state.refuse("publishing", error, at: 0)
    state.succeed("publishing", at: 1_000_000_000)
    #expect(state.current == error)
    state.succeed("heartbeats", at: 2_500_000_000)
    #expect(state.isEmpty)
    state.refuse("publishing", error, at: 3_000_000_000)
    state.succeed("publishing", at: 3_100_000_000)
    state.refuse("publishing", error, at: 3_200_000_000)
    state.succeed("heartbeats", at: 9_000_000_000)
    #expect(state.current == error)
  }
}
