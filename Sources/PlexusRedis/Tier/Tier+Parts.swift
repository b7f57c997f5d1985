// MARK: - Parts

extension Tier {
  /// The number of keys of one call of a script.
  ///
  /// With each read in a script, a server tracks all keys of the call: the time for a call grows with the square of
  /// their number. It also executes nothing else meanwhile. Counted instructions of the server for each key that is
  /// found: 91,000 with 32 keys, 58,000 with 8 or 4.
  static let partSize = 8

  typealias Parts<Element> = [(ArraySlice<Element>, Result<RESPValue, any Error>)]

  /// The number of parts that are sent before the first result is awaited.
  ///
  /// The time for a command holds for each of these windows, however long the list is, and other commands of the
  /// connection wait for at most one of them.
  private static let windowSize = 128

  /// Runs a script for the parts of a list.
  ///
  /// - Parameters:
  ///   - script: The script.
  ///   - list: The list.
  ///   - other: The way of the commands, if it is not that of the announcements.
  ///   - makeCall: Returns the input for a part.
  /// - Returns: The parts, in order, with their results.
  func run<Element>(
    _ script: RedisScript,
    inPartsOf list: [Element],
    on other: Route? = nil,
    _ makeCall: (ArraySlice<Element>) -> RedisScript.Call
  ) async -> Parts<Element> {
    let parts = stride(from: 0, to: list.count, by: Self.partSize).map {
      list[$0..<min($0 + Self.partSize, list.count)]
    }
    var results: [Result<RESPValue, any Error>] = []
    for start in stride(from: 0, to: parts.count, by: Self.windowSize) {
      let calls = parts[start...].prefix(Self.windowSize).map(makeCall)
      do {
        try await checkRestart(on: other ?? route)
        results += await script.run(calls, on: other ?? route)
      } catch {
        results += calls.map { _ in .failure(error) }
      }
    }
    return Array(zip(parts, results))
  }

  /// Runs a script for the parts of a list, each with the keys of all schemas.
  ///
  /// A part is repeated if there is a schema that was not known. In between, the script has changed nothing of it.
  ///
  /// - Parameters:
  ///   - script: The script, which returns the schemas of the space if a call does not have the keys of all of them.
  ///   - list: The list.
  ///   - other: The way of the commands, if it is not that of the announcements.
  ///   - makeCall: Returns the input for a part and some schemas.
  /// - Returns: The parts, in order, with their results.
  func run<Element>(
    _ script: RedisScript,
    inAllSchemasFor list: [Element],
    on other: Route? = nil,
    _ makeCall: (ArraySlice<Element>, _ schemas: [String]) -> RedisScript.Call
  ) async -> Parts<Element> {
    var parts: Parts<Element> = []
    var rest = list[...]
    for _ in 0..<Self.schemaRounds {
      let schemas = self.schemas
      let results = await run(script, inPartsOf: Array(rest), on: other) { makeCall($0, schemas) }
      rest = []
      for (part, result) in results {
        guard case .success(let reply) = result, let text = reply.text else {
          parts.append((part, result))
          continue
        }
        note(schemas: text)
        rest += part
      }
      if rest.isEmpty { return parts }
    }
    parts.append((rest, .failure(TierError.unexpectedReply)))
    return parts
  }

  /// The number of times that the schemas of a space can change during a call.
  private static let schemaRounds = 8

  /// Returns schemas as scripts read them.
  func list(_ schemas: [String]) -> String { " \(schemas.joined(separator: " ")) " }

  /// Checks the results of all parts.
  ///
  /// - Throws: ``TierFailures`` with the keys of the parts that have failed.
  func check<Element>(
    _ parts: Parts<Element>,
    _ key: KeyPath<Element, String>,
    _ checkReply: (ArraySlice<Element>, RESPValue) throws -> Void
  ) throws {
    var failures: [String: any Error] = [:]
    for (elements, reply) in parts {
      do {
        try checkReply(elements, try reply.get())
      } catch {
        for element in elements { failures[element[keyPath: key]] = error }
      }
    }
    if !failures.isEmpty { throw TierFailures(errors: failures) }
  }
}
