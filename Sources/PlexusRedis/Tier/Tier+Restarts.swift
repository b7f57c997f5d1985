internal import PlexusSupport

// MARK: - Restarts of the server

extension Tier {
  /// The check for a new connection, before any other command of the space.
  var restartCheck: RestartCheckState {
    let (nonce, knowledge) = knowledgeWithNonce
    return RestartCheckState(
      names,
      in: route.database,
      nonce: nonce,
      knowledge: knowledge,
      skipping: .random(in: TierScripts.skips)
    )
  }

  /// Checks the one server before a script of the space.
  ///
  /// In a cluster, a route prepares each server that it uses.
  func checkRestart(on route: Route) async throws {
    if let server = route.only { try await checkRestart(at: Passage(master: server)) }
  }

  /// Checks a server before a script of the space, unless that was done on the connection: the space is newer, a right was
  /// missing, or the server can have loaded other data.
  func checkRestart(at passage: Passage) async throws {
    let space = names.schemas
    let connection = passage.master.connection
    let (isChecked, round, former) = connection.checked.withLock {
      ($0.isChecked(space), $0.round, $0.history(of: space))
    }
    guard !isChecked else { return }
    let number = epoch?.counter
    var checks = RestartChecksState([restartCheck])
    while !checks.next.isEmpty {
      let replies = try await passage.send(checks.next).map { result in
        do {
          return try result.get()
        } catch let error as RedisError {
          return RESPValue.error(error)
        }
      }
      do {
        try checks.answer(replies)
      } catch {
        switch error {
        case .refused(let error): throw error
        case .changed: throw RedisConnectionError.lost(reason: RestartChecksState.changeReason)
        }
      }
    }
    if let error = checks.missingRight { throw error }
    let history = checks.history ?? ""
    if let former, former != history {
      // Scripts that were on their way have given out tokens of the new run before it was noted.
      let command = TierScripts.removeAll.command(removalOfAll(unlessRaisedAbove: number))
      _ = try change(await passage.send([command])[0].get())
    }
    connection.checked.withLock { $0.note(space, of: history, asOf: round) }
  }
}
