import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The options` {
  private func options(_ arguments: String...) throws -> Options? {
    guard case .run(let options) = try Options.parse(arguments) else { return nil }
    return options
  }

  @Test func `default to a day of a few minutes`() throws {
    let options = try #require(try options())
    #expect(options == Options())
    #expect(options.pace == .live(speed: 300))
    #expect(options.latency == .milliseconds(25))
    #expect(!options.isPlain)
    #expect(options.outage == nil)
    #expect(options.until == nil)
    #expect(options.port == 0)
    #expect(options.filter == "")
    #expect(options.cache == .standard)
  }

  @Test func `set the filter and the cache`() throws {
    #expect(try options("--filter", "delta jfk")?.filter == "delta jfk")
    #expect(try options("--filter=")?.filter == "")
    #expect(try options("--cache", "a b")?.cache == .folder(path: "a b"))
    #expect(try options("--no-cache")?.cache == .nowhere)
    #expect(try options("--no-cache", "--cache=x")?.cache == .folder(path: "x"))
    #expect(try options("--cache=x", "--no-cache")?.cache == .nowhere)
  }

  @Test func `name a Redis server by its host and port, or by its socket`() throws {
    #expect(try options()?.redis == nil)
    #expect(try options("--redis", "localhost:6379")?.redis == .port(6379, host: "localhost"))
    #expect(try options("--redis=[::1]:1")?.redis == .port(1, host: "::1"))
    #expect(try options("--redis", "/run/redis.sock")?.redis == .socket(path: "/run/redis.sock"))
    for text in ["localhost", ":6379", "localhost:", "localhost:0", "localhost:65536", ""] {
      #expect(throws: UsageError.self) { try Options.parse(["--redis", text]) }
    }
  }

  @Test(arguments: [
    ("--speed", "max", Pace.maximum), ("--speed", "1", .live(speed: 1)),
    ("--speed", "2.5", .live(speed: 2.5)), ("--speed", "100000", .live(speed: 100_000)),
  ])
  func `set the speed`(option: String, value: String, pace: Pace) throws {
    #expect(try options(option, value)?.pace == pace)
    #expect(try options("\(option)=\(value)")?.pace == pace)
  }

  @Test func `set everything else`() throws {
    let options = try #require(
      try options(
        "--plain",
        "--latency",
        "0",
        "--offline-at",
        "9:00",
        "--online-at=09:30",
        "--until",
        "24:00",
        "--port",
        "65535"
      )
    )
    #expect(options.isPlain)
    #expect(options.latency == .zero)
    #expect(
      options.outage == Outage(begin: ClockTime(minutes: 540), end: ClockTime(minutes: 570))
    )
    #expect(options.until == ClockTime(minutes: 1440))
    #expect(options.port == 65535)
  }

  @Test func `use the last of two occurrences`() throws {
    #expect(try options("--port", "1", "--port=2")?.port == 2)
  }

  @Test func `end an outage after two hours by default`() throws {
    let outage = try options("--offline-at", "09:00")?.outage
    #expect(outage?.end == ClockTime(minutes: 660))
  }

  @Test(arguments: [["--help"], ["-h"], ["--plain", "--help"], ["--help", "--nonsense"]])
  func `show help on request, regardless of later arguments`(arguments: [String]) throws {
    #expect(try Options.parse(arguments) == .showHelp)
  }

  @Test(arguments: [
    (["--sped"], "there is no option --sped; --help lists them all"),
    (["--sped=1"], "there is no option --sped; --help lists them all"),
    (["-x"], "there is no option -x; --help lists them all"),
    (["--"], "there is no option --; --help lists them all"),
    (["fast"], "\"fast\" is not an option; --help lists them all"),
    (["-"], "\"-\" is not an option; --help lists them all"),
    ([""], "\"\" is not an option; --help lists them all"),
    (["--plain=yes"], "--plain takes no value; write it alone"),
    (["--help="], "--help takes no value; write it alone"),
    (["--speed"], "--speed needs a number from 1 to 100000 or \"max\""),
    (["--speed", "fast"], "--speed needs a number from 1 to 100000 or \"max\", not \"fast\""),
    (["--speed="], "--speed needs a number from 1 to 100000 or \"max\", not \"\""),
    (["--speed", "0"], "--speed needs a number from 1 to 100000 or \"max\", not \"0\""),
    (["--speed", "-1"], "--speed needs a number from 1 to 100000 or \"max\", not \"-1\""),
    (["--speed", "nan"], "--speed needs a number from 1 to 100000 or \"max\", not \"nan\""),
    (["--speed", "inf"], "--speed needs a number from 1 to 100000 or \"max\", not \"inf\""),
    (
      ["--speed", "--plain"], "--speed needs a number from 1 to 100000 or \"max\", not \"--plain\""
    ),
    (
      ["--latency", "1.5"],
      "--latency needs a number of milliseconds from 0 to 10000, not \"1.5\""
    ),
    (
      ["--latency", "10001"],
      "--latency needs a number of milliseconds from 0 to 10000, not \"10001\""
    ),
    (["--port", "65536"], "--port needs a port from 0 (any free port) to 65535, not \"65536\""),
    (["--filter"], "--filter needs a search text"),
    (["--cache"], "--cache needs a folder"),
    (["--cache="], "--cache needs a folder, not \"\""),
    (["--no-cache=x"], "--no-cache takes no value; write it alone"),
    (["--until", "9"], "--until needs a time of the day as HH:MM, not \"9\""),
    (["--offline-at", "25:00"], "--offline-at needs a time of the day as HH:MM, not \"25:00\""),
    (["--online-at", "09:00"], "--online-at needs --offline-at with an earlier time"),
    (
      ["--offline-at", "09:00", "--online-at", "09:00"],
      "--online-at 09:00 must be later than --offline-at 09:00"
    ),
    (
      ["--offline-at", "09:00", "--until", "09:00"],
      "--offline-at 09:00 must be earlier than --until 09:00"
    ),
  ])
  func `that are invalid result in a one-line message`(
    arguments: [String],
    message: String
  ) {
    let error = #expect(throws: UsageError.self) { try Options.parse(arguments) }
    #expect(error?.description == message)
    #expect(error?.description.contains("\n") == false)
  }

  @Test(arguments: [
    "--speed", "--plain", "--latency", "--offline-at", "--online-at", "--until", "--port", "--help",
    "--filter", "--cache", "--no-cache",
  ])
  func `are all listed in the help`(option: String) {
    #expect(Usage.text.contains("  \(option) "))
  }

  @Test func `have their actual defaults in the help`() {
    let options = Options()
    #expect(options.pace == .live(speed: 300) && Usage.text.contains("300 if not given"))
    #expect(options.latency == .milliseconds(25) && Usage.text.contains("25 if not given"))
    #expect(Outage.defaultMinutes == 120 && Usage.text.contains("two hours later"))
  }
}
