internal import Plexus

// MARK: - Reading without a script

extension Tier {
  /// The number of entries that are read with one reading of the epoch and the tags.
  static let readSize = 64
  /// The number of parts that are read at the same time.
  static let readWidth = 16

  /// Reads entries by plain commands, which cost the server a fifth of a script.
  ///
  /// The commands are sent together, but not executed as a whole: the epoch and the tags are read after the entries. Both
  /// only grow, so an entry that belongs to them then belonged to them when it was read. The time, read last, makes
  /// no entry younger than it is. The last command of several entries is a mark: if a reply is surplus or missing, no entry
  /// gets the payload of another one, and the connection ends. The reading of one entry has none: a server that sends
  /// one round of replies too many can give it another entry.
  ///
  /// Many entries are read in parts, some of which are sent before the first reply is awaited. While the replies to one
  /// part are used, those to the next ones arrive. The time for a command holds for each part.
  ///
  /// - Parameters:
  ///   - wishes: The wishes for the entries.
  ///   - use: Makes the result of an entry.
  /// - Returns: The result of each wish, in the same order; `nil` for the script, if there is anything but a valid entry,
  ///   or what the reading has failed with.
  func read<Content: Sendable>(
    for wishes: [KeyedWish],
    _ use: @escaping @Sendable (TierEntry) -> Content = { $0 }
  ) async -> [Result<Content?, any Error>] {
    guard wishes.count > Self.readSize else { return await readPart(wishes[...], use) }
    let starts = stride(from: 0, to: wishes.count, by: Self.readSize)
    typealias Part = (number: Int, results: [Result<Content?, any Error>])
    return await withTaskGroup(of: Part.self) { group in
      var parts = starts.map { _ in [Result<Content?, any Error>]() }
      for (number, start) in starts.enumerated() {
        if number >= Self.readWidth, let part = await group.next() {
          parts[part.number] = part.results
        }
        group.addTask {
          let part = wishes[start..<min(start + Self.readSize, wishes.count)]
          return (number, await self.readPart(part, use))
        }
      }
      for await (number, results) in group { parts[number] = results }
      return parts.flatMap(\.self)
    }
  }

  private func readPart<Content>(
    _ wishes: ArraySlice<KeyedWish>,
    _ use: (TierEntry) -> Content
  ) async -> [Result<Content?, any Error>] {
    let newest = newest
    // Before the first answer of a script, there is nothing to compare with.
    guard newest.epoch != nil else { return wishes.map { _ in .success(nil) } }
    let mark = wishes.count > 1 ? nonce : nil
    let reading = EntryReading(wishes, names, epochReading, mark: mark)
    let replies = await route.send(reading.commands, repeatsAll: true)
    let entries = reading.entries(from: replies[...], asOf: newest)
    if let token = entries.compactMap({ try? $0.get()?.version.token }).max() { note(token: token) }
    return entries.map { entry in entry.map { $0.map(use) } }
  }
}

/// The commands that read some entries of a space, and what their replies say.
private struct EntryReading {
  private static let time = RedisCommand("TIME")

  let commands: [RedisCommand]
  private let wishes: ArraySlice<Tier.KeyedWish>
  /// The places of the tags among the values that are read with the epoch.
  private var places: [String: Int] = [:]
  /// Whether a mark is the last command.
  private let isMarked: Bool

  /// - Parameters:
  ///   - wishes: The wishes for the entries.
  ///   - names: The keys of the space.
  ///   - epochReading: The command that reads the epoch and the tokens, for entries without tags.
  ///   - mark: The text of the mark; `nil` for none.
  init(
    _ wishes: ArraySlice<Tier.KeyedWish>,
    _ names: TierNames,
    _ epochReading: RedisCommand,
    mark: String?
  ) {
    self.wishes = wishes
    isMarked = mark != nil
    var commands = wishes.map { wish in
      RedisCommand("HMGET", [.text(names.entry(wish.key)), "e", "v", "t", "d", "o"])
    }
    var marks: [RedisCommand.Argument] = [.text(names.epoch), .text(names.tokens)]
    commands.reserveCapacity(commands.count + 3)
    for wish in wishes {
      for tag in wish.value.tags.lazy.map(\.name) where places[tag] == nil {
        places[tag] = marks.count
        marks.append(.text(names.tag(tag)))
      }
    }
    commands.append(places.isEmpty ? epochReading : RedisCommand("MGET", marks))
    commands.append(Self.time)
    if let mark { commands.append(RedisCommand(marking: mark)) }
    self.commands = commands
  }

  /// Returns the entries in the replies to the commands.
  ///
  /// - Parameters:
  ///   - replies: The replies.
  ///   - newest: The epoch that the node knows, and the token that the engine has at least. The script judges another
  ///     epoch, and an engine that has lost data.
  /// - Returns: The entry of each wish, in the same order, as ``Tier/read(for:)`` returns them.
  func entries(
    from replies: ArraySlice<Result<RESPValue, any Error>>,
    asOf newest: (epoch: TierEpoch?, text: String, token: UInt64)
  ) -> [Result<TierEntry?, any Error>] {
    let context: (marks: [RESPValue], milliseconds: Int64)?
    do {
      // The connection compares the mark.
      let isPaired = try !isMarked || replies.last?.present() != nil
      let last = replies.endIndex - (isMarked ? 2 : 1)
      context = try (replies[last - 1].present()?.elements).flatMap { marks in
        guard isPaired, marks.count == places.count + 2,
          marks[0].bytes?.elementsEqual(newest.text.utf8) == true,
          let latest = UInt64(marks[1]), latest >= newest.token,
          latest / TierScripts.blockSize == newest.token / TierScripts.blockSize,
          latest <= TierScripts.largestNumber,
          let time = try replies[last].present()?.elements, time.count == 2,
          let seconds = time[0].integer, let microseconds = time[1].integer
        else { return nil }
        let (milliseconds, isNoTime) = seconds.multipliedReportingOverflow(by: 1_000)
        return isNoTime ? nil : (marks, milliseconds &+ microseconds / 1_000)
      }
    } catch {
      return wishes.map { _ in .failure(error) }
    }
    return zip(wishes, replies).map { wish, reply in
      Result {
        guard let fields = try reply.present()?.elements, let context, let epoch = newest.epoch
        else { return nil }
        return entry(fields, wish, in: epoch, context.marks, context.milliseconds)
      }
    }
  }

  /// Returns the entry in some fields, if it is valid, and the wish takes it.
  private func entry(
    _ fields: [RESPValue],
    _ wish: Tier.KeyedWish,
    in epoch: TierEpoch,
    _ marks: [RESPValue],
    _ now: Int64
  ) -> TierEntry? {
    // A token that the engine has not given yet is damage.
    guard fields.count == 5, fields[0] == marks[0], let token = UInt64(fields[1]),
      let latest = UInt64(marks[1]), token <= latest, let stored = fields[2].integer,
      let payload = fields[3].bytes
    else { return nil }
    // Outdated.
    if fields[4] != .null {
      guard let outdated = UInt64(fields[4]), outdated < token else { return nil }
    }
    let version = SharedCache.Version(epoch, token: token)
    if let old = wish.value.newerThan, old.tierEpoch == epoch, old.token >= token { return nil }
    for tag in wish.value.tags {
      guard let mark = places[tag.name].flatMap({ SharedCache.Version(mark: marks[$0]) }),
        mark.tierEpoch == epoch, mark.token < token
      else { return nil }
    }
    let (age, isDamaged) = now.subtractingReportingOverflow(stored)
    guard !isDamaged else { return nil }
    return TierEntry(version: version, age: .milliseconds(max(0, age)), payload: payload)
  }
}

extension SharedCache.Version {
  /// Reads the mark of a tag: `epoch token`.
  fileprivate init?(mark: RESPValue) {
    guard
      let parts = mark.bytes?.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false),
      parts.count == 2, let epoch = TierEpoch(String(decoding: parts[0], as: UTF8.self)),
      let token = UInt64(decimal: parts[1])
    else { return nil }
    self.init(epoch, token: token)
  }
}

extension UInt64 {
  /// Reads a number that the server sent as text.
  fileprivate init?(_ value: RESPValue) {
    guard let number = value.bytes.flatMap({ UInt64(decimal: $0[...]) }) else { return nil }
    self = number
  }
}

extension Result<RESPValue, any Error> {
  /// Returns the reply; `nil` for an error of the server, which the script has as well.
  func present() throws -> RESPValue? {
    do {
      return try get()
    } catch is RedisError {
      return nil
    }
  }
}
