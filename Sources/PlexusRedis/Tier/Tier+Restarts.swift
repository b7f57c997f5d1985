internal import PlexusSupport

// MARK: - Restarts of the server

extension Tier {
  /// The check for a new connection, before any other command of the space.
  var restartCheck: RestartCheckState {
    let (nonce, knowledge) = knowledgeWithNonce
    return RestartCheckState(
      names,
      in: connection.database,
      nonce: nonce,
      knowledge: knowledge,
      skipping: .random(in: TierScripts.skips)
    )
  }

  /// Checks the server before the first script of the space: the connection is older.
  func checkRestart() async throws {
    guard !isChecked.withLock({ $0 }) else { return }
    var check = restartCheck
    while !check.commands.isEmpty {
      let replies = try await connection.send(check.commands).map { result in
        do {
          return try result.get()
        } catch let error as RedisError {
          return RESPValue.error(error)
        }
      }
      // Known once the connection has answered.
      check.history = connection.history
      if let error = check.answer(replies) { throw error }
    }
    isChecked.withLock { $0 = true }
  }
}
