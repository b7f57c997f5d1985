import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `A parser of RESP3` {
  /// Values of every type, as a server sends them, and what they mean.
  static let samples: [(text: String, value: RESPValue)] = [
    ("+OK\r\n", .string(Array("OK".utf8))),
    ("+\r\n", .string([])),
    ("-ERR no such key\r\n", .error(RedisError("ERR no such key".utf8))),
    (":0\r\n", .integer(0)),
    (":-9223372036854775808\r\n", .integer(.min)),
    ("$5\r\na\r\nbc\r\n", .string(Array("a\r\nbc".utf8))),
    ("$0\r\n\r\n", .string([])),
    ("$-1\r\n", .null),
    ("*-1\r\n", .null),
    ("_\r\n", .null),
    ("#t\r\n", .boolean(true)),
    ("#f\r\n", .boolean(false)),
    (",1.5\r\n", .double(1.5)),
    (",-inf\r\n", .double(-.infinity)),
    (
      "(3492890328409238509324850943850943825024385\r\n",
      .string(Array("3492890328409238509324850943850943825024385".utf8))
    ),
    ("!9\r\nNOSCRIPT \r\n", .error(RedisError("NOSCRIPT ".utf8))),
    ("=8\r\ntxt:word\r\n", .string(Array("word".utf8))),
    ("*0\r\n", .array([])),
    (
      "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
      .array([.integer(1), .array([.string([UInt8(ascii: "x")])])])
    ),
    ("~2\r\n#t\r\n_\r\n", .array([.boolean(true), .null])),
    ("%1\r\n+a\r\n*0\r\n", .map([.string([UInt8(ascii: "a")]), .array([])])),
    ("%0\r\n", .map([])),
    (
      ">2\r\n+invalidate\r\n*1\r\n+k\r\n",
      .push([.string(Array("invalidate".utf8)), .array([.string([UInt8(ascii: "k")])])])
    ),
    ("|1\r\n+ttl\r\n:3\r\n:7\r\n", .integer(7)),
    ("|0\r\n:8\r\n", .integer(8)),
    ("*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n:6\r\n", .array([.integer(5), .integer(6)])),
  ]

  static var stream: [UInt8] { samples.flatMap { Array($0.text.utf8) } }

  private func parse(_ pieces: some Sequence<ArraySlice<UInt8>>) throws -> [RESPValue] {
    var parser = RESPParser()
    var values: [RESPValue] = []
    for piece in pieces {
      parser.append(piece)
      while let value = try parser.next() { values.append(value) }
    }
    return values
  }

  @Test func `a parser of RESP3 understands every type`() throws {
    for (text, value) in Self.samples {
      #expect(try parse([Array(text.utf8)[...]]) == [value], "\(text)")
    }
  }

  @Test func `a parser of RESP3 understands a stream that is cut anywhere`() throws {
    let (bytes, values) = (Self.stream, Self.samples.map(\.value))
    for cut in 0...bytes.count {
      #expect(try parse([bytes[..<cut], bytes[cut...]]) == values)
    }
    #expect(try parse(bytes.indices.map { bytes[$0...$0] }) == values)
  }

  @Test func `a parser of RESP3 returns a value as soon as its last byte has arrived`() throws {
    for (text, value) in Self.samples {
      let bytes = Array(text.utf8)
      var parser = RESPParser()
      parser.append(bytes.dropLast())
      let early = try parser.next()
      parser.append(bytes.suffix(1))
      let complete = try parser.next()
      let late = try parser.next()
      #expect(early == nil)
      #expect(complete == value)
      #expect(late == nil)
    }
  }

  @Test func `a parser of RESP3 understands or refuses a stream with any byte changed`() {
    let bytes = Self.stream
    var (understood, refused) = (0, 0)
    for index in bytes.indices {
      for replacement: UInt8 in [0, 10, 13, 36, 42, 45, 48, 57, 124, 255] {
        var damaged = bytes
        damaged[index] = replacement
        // It must not trap, and takes no more than the stream has.
        if (try? parse([damaged[...]])) == nil { refused += 1 } else { understood += 1 }
      }
    }
    #expect(understood > 0 && refused > 0)
  }

  @Test(arguments: [
    ("hello\r\n", RESPError.unknownType(UInt8(ascii: "h"))),
    ("HTTP/1.1 400 Bad Request\r\n", .unknownType(UInt8(ascii: "H"))),
    (":12a\r\n", .malformedNumber),
    (":9223372036854775808\r\n", .malformedNumber),
    (":\r\n", .malformedNumber),
    (",x\r\n", .malformedNumber),
    ("$-2\r\n", .malformedNumber),
    ("*-2\r\n", .malformedNumber),
    ("#x\r\n", .malformedBoolean),
    ("#\r\n", .malformedBoolean),
    ("+a\rb\r\n", .missingLineEnd),
    ("\r\n", .missingLineEnd),
    ("$2\r\nabc\r\n", .missingLineEnd),
    ("$99999999999\r\n", .tooLarge),
    ("*99999999999\r\n", .tooLarge),
    (String(repeating: "*1\r\n", count: 100), .nestedTooDeeply),
    ("+" + String(repeating: "x", count: 70_000), .lineTooLong),
  ])
  func `a parser of RESP3 refuses what is not RESP3 or too large`(text: String, error: RESPError) {
    #expect(throws: error) { try parse([Array(text.utf8)[...]]) }
  }

  @Test func `a parser limits the memory of a value by what has arrived, not by what is announced`()
    throws
  {
    // Announced are 9,999 elements: nothing is reserved for them, and the limit ends them early.
    #expect(throws: RESPError.tooLarge) {
      var parser = RESPParser(maximumSize: 10_000)
      parser.append("*9999\r\n".utf8)
      for _ in 0..<9_999 {
        parser.append(":1\r\n".utf8)
        _ = try parser.next()
      }
    }
    // The limit is that of one value.
    var other = RESPParser(maximumSize: 10_000)
    for _ in 0..<10_000 {
      other.append(":1\r\n".utf8)
      let value = try other.next()
      #expect(value == .integer(1))
    }
  }

  @Test(arguments: [0, 7, 9, 10, 11, 99, 100, 101, 999, 1_000, 10_203_040, .max, -1, -10, .min])
  func `a number is written in decimal digits`(number: Int64) {
    var bytes: [UInt8] = []
    bytes.append(decimal: number)
    #expect(String(decoding: bytes, as: UTF8.self) == "\(number)")
    #expect(Int64(decimal: bytes[...]) == number)
  }

  @Test func `a command is an array of strings, counted in bytes`() throws {
    let command = RedisCommand("SET", ["ä", .data([0, 13, 10]), -12])
    #expect(
      String(decoding: command.encoded, as: UTF8.self)
        == "*4\r\n$3\r\nSET\r\n$2\r\nä\r\n$3\r\n\0\r\n\r\n$3\r\n-12\r\n"
    )
    #expect(
      try parse([command.encoded[...]]) == [
        .array([
          .string(Array("SET".utf8)), .string(Array("ä".utf8)), .string([0, 13, 10]),
          .string(Array("-12".utf8)),
        ])
      ]
    )
  }
}
