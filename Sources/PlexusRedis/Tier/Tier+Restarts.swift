internal import PlexusSupport

// MARK: - Restarts of the server

extension Tier {
  /// The check for a new connection, before any other command of the space.
  var restartCheck: RestartCheckState {
    RestartCheckState(
      names,
      in: connection.database,
      knowledge: knowledge,
      skipping: .random(in: TierScripts.skips)
    )
  }

  /// Checks the server before the first script of the space: the connection is older.
  func checkRestart() async throws {
    guard !isChecked.withLock({ $0 }) else { return }
    var check = restartCheck
    while let command = check.command {
      var reply: RESPValue
      do {
        reply = try await connection.send(command)
      } catch let error as RedisError {
        reply = .error(error)
      }
      if let error = check.answer(reply) { throw error }
    }
    isChecked.withLock { $0 = true }
  }
}
