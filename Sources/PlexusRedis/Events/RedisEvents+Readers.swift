internal import Plexus
internal import PlexusSupport

// MARK: - State

extension RedisEvents {
  /// The message in progress of a reader of a group.
  struct Hand: Sendable {
    let stream: String
    let group: String
    let position: LinkPosition
    let identity: [UInt8]
    /// Whether it was acknowledged or rejected.
    var isSettled = false
  }

  /// A reader of a group.
  struct Member: Sendable {
    /// The number of messages that it has received and not finished.
    var held = 0
    /// The message in progress.
    var hand: Hand?
    /// The end of the reader when the link is closed, which returns whether the reader still exists.
    var leave: (@Sendable () async -> Bool)?
    /// The calls that close the link, while they wait for the reader, which is being released.
    var closing: [CheckedContinuation<Void, Never>] = []
  }

  /// Everything about the connection and the readers.
  struct State: Sendable {
    /// The ways of the commands by slot.
    var routes: [Int: Route] = [:]
    var isClosed = false
    var lastID: UInt64 = 0
    /// The signals of readers, by the key that they read.
    var bells: [String: [UInt64: Bell]] = [:]
    var channels: [String: [UInt64: ChannelBuffer]] = [:]
    var members: [UInt64: Member] = [:]
    /// The calls by which readers give messages back that have failed, by the key that they change.
    var owed: [String: [RedisScript.Call]] = [:]
    /// The number of messages that were stored and not announced.
    var unannounced = 0
    var heart: Task<Void, Never>?
    var places = ReaderPlaces()
    var health = HealthState()
    /// The acknowledgements that the engine has not confirmed.
    var acknowledgements = AcknowledgementState()
    /// The acknowledgements that are waited for, or sent again, with their streams.
    var acknowledging: [UInt64: (stream: String, task: Task<Void, any Error>)] = [:]
    /// The calls by which readers that have ended give their messages back.
    var departures: [UInt64: Task<Void, Never>] = [:]

    var allBells: [Bell] {
      bells.values.flatMap(\.values)
    }
  }
}

// MARK: - Readers

extension RedisEvents {
  /// Returns the name of a reader of a group, which no other has.
  func consumer(of id: UInt64) -> String { "\(node).\(id)" }

  /// Returns a number that no other reader has.
  func makeReaderID() -> UInt64 {
    state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
  }

  /// Rings a bell when a key changes, and when the connection is lost, made or closed.
  func add(_ bell: Bell, for key: String, _ id: UInt64) {
    state.withLock { $0.bells[key, default: [:]][id] = bell }
  }

  func removeBell(for key: String, _ id: UInt64) {
    let removed = state.withLock { state in
      let removed = state.bells[key]?.removeValue(forKey: id)
      if state.bells[key]?.isEmpty == true { state.bells[key] = nil }
      return removed
    }
    withExtendedLifetime(removed) {}
  }

  /// Records the messages of a group that a reader has received and not finished.
  func record(_ load: ReaderLoad, of stream: String, _ group: String, by id: UInt64) {
    state.withLock { state in
      state.members[id, default: Member()].held = load.count
      switch load.change {
      case .begun(let position, let identity):
        let hand = Hand(stream: stream, group: group, position: position, identity: identity)
        state.members[id]?.hand = hand
      case .ended: state.members[id]?.hand = nil
      case nil: break
      }
    }
  }

  /// Records the latest message of a reader that ends, for its successor.
  func remember(_ place: Place) {
    let now = Nanoseconds.now
    state.withLock { $0.places.remember(place, at: now) }
  }

  /// Returns the latest message of an earlier reader, as ``ReaderPlaces/recall(_:of:at:)`` does.
  func recall(
    _ reading: Place.Reading,
    of stream: String,
    at position: LinkPosition? = nil
  ) -> Place? {
    state.withLock { $0.places.recall(reading, of: stream, at: position) }
  }

  /// Returns whether the server has lost the latest message of a reader, or given its position again, and the id of the
  /// message at the position.
  func look(at place: Place) async throws -> (isBehind: Bool, id: String?) {
    let (latest, id) = try await survey(place.stream, at: place.position)
    return (place.isLost(latest: latest, id: id), id)
  }

  /// Calls a closure when the link is closed, which returns whether the reader still exists.
  func add(_ leave: @escaping @Sendable () async -> Bool, _ id: UInt64) {
    state.withLock { $0.members[id, default: Member()].leave = leave }
  }

  /// Removes a reader of a group that has given its messages back, or has begun to.
  func removeMember(_ id: UInt64) {
    let removed = state.withLock { $0.members.removeValue(forKey: id) }
    for call in removed?.closing ?? [] { call.resume() }
  }

  /// Waits for a reader that another thread is releasing.
  func release(of id: UInt64) async {
    await withCheckedContinuation { continuation in
      let isReleased = state.withLock { state in
        guard state.members[id]?.leave != nil else { return true }
        state.members[id]?.closing.append(continuation)
        return false
      }
      if isReleased { continuation.resume() }
    }
  }

  /// Adds a buffer for the messages of a channel.
  func add(_ buffer: ChannelBuffer, for channel: String, _ id: UInt64) {
    state.withLock { $0.channels[channel, default: [:]][id] = buffer }
  }

  /// Removes a buffer, and unsubscribes from the channel after the last one.
  func removeBuffer(for channel: String, _ id: UInt64) {
    let (removed, isLast) = state.withLock { state -> (ChannelBuffer?, Bool) in
      let removed = state.channels[channel]?.removeValue(forKey: id)
      let isLast = removed != nil && state.channels[channel]?.isEmpty == true
      if isLast { state.channels[channel] = nil }
      return (removed, isLast && !state.isClosed)
    }
    withExtendedLifetime(removed) {}
    guard isLast, let route = try? route(for: channel), route.isConnected,
      let connection = route.master?.connection
    else { return }
    Task.detached { [self] in
      guard state.withLock({ $0.channels[channel] == nil }) else { return }
      _ = try? await connection.send(RedisCommand("UNSUBSCRIBE", [.text(channel)]))
      // A reader that has subscribed meanwhile can be unsubscribed as well: it begins again.
      let others = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in others { buffer.break() }
    }
  }

  /// Whether a reader of a stream has read everything, and waits.
  func hasIdleReader(of key: String) -> Bool {
    state.withLock { $0.bells[key]?.values.contains(where: \.isAwaited) ?? false }
  }

  /// Wakes the readers of a stream.
  func ring(_ key: String) {
    let bells = state.withLock { $0.bells[key]?.values.map(\.self) ?? [] }
    for bell in bells { bell.ring() }
  }
}
