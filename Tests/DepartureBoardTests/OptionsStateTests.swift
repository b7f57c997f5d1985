import Foundation
import PlexusRedis
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The options` {
  private func options(_ arguments: String...) throws -> Options {
    try #require(try Options.parse(arguments))
  }

  @Test func `the options have the defaults that the help states`() throws {
    let options = try options("--offline-at", "09:00")
    #expect(options.speed == 300 && Options.help.contains("300 if not given"))
    #expect(options.latency == .milliseconds(25) && Options.help.contains("25 if not given"))
    #expect(options.outage?.upperBound == .at("11:00") && Options.help.contains("two hours later"))
    #expect(!options.isPlain && options.until == nil && options.port == 0 && options.filter == "")
    #expect(options.redis == nil && options.cache == Options.standardCache)
  }

  @Test func `the options set every setting of the program`() throws {
    let options = try options(
      "--plain",
      "--latency",
      "0",
      "--offline-at",
      "9:00",
      "--online-at=09:30",
      "--until",
      "24:00",
      "--port",
      "1",
      "--port=65535",
      "--filter",
      "delta jfk",
      "--cache=a b",
      "--speed=2.5"
    )
    #expect(options.isPlain && options.latency == .zero && options.port == 65535)
    #expect(options.outage == .at("09:00")..<(.at("09:30")) && options.until == .at("24:00"))
    #expect(options.filter == "delta jfk" && options.speed == 2.5)
    #expect(options.cache?.lastPathComponent == "a b")
    #expect(try self.options("--cache=x", "--no-cache").cache == nil)
    #expect(try self.options("--speed", "max").speed == .infinity)
  }

  @Test func `the options name a Redis server by its host and port, or by its socket`() throws {
    #expect(
      try options("--redis", "localhost:6379").redis == .tcp(host: "localhost", port: 6379)
    )
    #expect(try options("--redis=[::1]:1").redis == .tcp(host: "::1", port: 1))
    #expect(try options("--redis", "/run/redis.sock").redis == .unix(path: "/run/redis.sock"))
    for text in ["localhost", ":6379", "localhost:", "localhost:0", "localhost:65536", ""] {
      #expect(throws: UsageError.self) { try Options.parse(["--redis", text]) }
    }
  }

  @Test(arguments: [["--help"], ["-h"], ["--plain", "--help"], ["--help", "--nonsense"]])
  func `the options show help on request, regardless of later arguments`(arguments: [String]) throws
  {
    #expect(try Options.parse(arguments) == nil)
  }

  @Test(arguments: [
    (["--sped"], "there is no option \"--sped\"; --help lists them all"),
    (["--sped=1"], "there is no option \"--sped=1\"; --help lists them all"),
    (["fast"], "there is no option \"fast\"; --help lists them all"),
    ([""], "there is no option \"\"; --help lists them all"),
    (["--plain=yes"], "--plain takes no value; write it alone"),
    (["--speed"], "--speed needs a number from 1 to 100000 or \"max\""),
    (["--speed", "fast"], "--speed needs a number from 1 to 100000 or \"max\", not \"fast\""),
    (["--speed="], "--speed needs a number from 1 to 100000 or \"max\", not \"\""),
    (["--speed", "0"], "--speed needs a number from 1 to 100000 or \"max\", not \"0\""),
    (["--speed", "nan"], "--speed needs a number from 1 to 100000 or \"max\", not \"nan\""),
    (["--speed", "inf"], "--speed needs a number from 1 to 100000 or \"max\", not \"inf\""),
    (["--latency", "-1"], "--latency needs a number of milliseconds from 0 to 10000, not \"-1\""),
    (["--port", "65536"], "--port needs a port from 0 (any free port) to 65535, not \"65536\""),
    (["--cache="], "--cache needs a folder, not \"\""),
    (["--until", "9"], "--until needs a time of the day as HH:MM, not \"9\""),
    (["--online-at", "09:00"], "--online-at needs --offline-at with an earlier time"),
    (
      ["--offline-at", "09:00", "--online-at", "08:00"],
      "--online-at 08:00 must be later than --offline-at 09:00"
    ),
    (
      ["--offline-at", "09:00", "--until", "09:00"],
      "--offline-at 09:00 must be earlier than --until 09:00"
    ),
  ])
  func `invalid options result in a message with a remedy`(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Options.parse(arguments) }
    #expect(error?.description == message)
  }

  @Test(arguments: [
    "--speed", "--plain", "--latency", "--offline-at", "--online-at", "--until", "--port", "--help",
    "--filter", "--cache", "--no-cache", "--redis",
  ])
  func `the help lists each option`(option: String) {
    #expect(Options.help.contains("  \(option) "))
  }
}
