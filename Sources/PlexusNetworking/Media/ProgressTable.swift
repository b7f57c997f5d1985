internal import PlexusSupport

/// The progress of downloads, and the streams that observe it.
final class ProgressTable<Key: Hashable & Sendable>: Sendable {
  private typealias Continuation = AsyncStream<DownloadProgress>.Continuation

  private struct Entry: Sendable {
    /// The download in progress; reports of an earlier one come too late.
    var download: Int?
    var latest: DownloadProgress?
    var continuations: [Int: Continuation] = [:]
  }

  private struct State: Sendable {
    var entries: [Key: Entry] = [:]
    var nextID = 0
  }

  private let state = Locked(State())

  deinit {
    for entry in state.withLock({ $0.entries }).values {
      for continuation in entry.continuations.values { continuation.finish() }
    }
  }

  /// Registers a stream of a key, which begins with the latest progress.
  func subscribe(_ key: Key) -> (stream: AsyncStream<DownloadProgress>, id: Int) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: DownloadProgress.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    var known: DownloadProgress?
    // The latest progress is yielded before the stream is registered: later it could follow a newer one.
    while let latest = register(continuation, id, of: key, unlessNewerThan: known) {
      continuation.yield(latest)
      known = latest
    }
    continuation.onTermination = { [weak self] _ in _ = self?.remove(id, of: key) }
    return (stream, id)
  }

  /// Registers a stream that has the latest progress, or returns the progress that it lacks.
  func register(
    _ continuation: AsyncStream<DownloadProgress>.Continuation,
    _ id: Int,
    of key: Key,
    unlessNewerThan known: DownloadProgress?
  ) -> DownloadProgress? {
    state.withLock { state in
      if let latest = state.entries[key]?.latest, latest != known { return latest }
      state.entries[key, default: Entry()].continuations[id] = continuation
      return nil
    }
  }

  /// Ends one stream with a last element.
  func finish(_ id: Int, of key: Key, with progress: DownloadProgress) {
    guard let continuation = remove(id, of: key) else { return }
    continuation.yield(progress)
    continuation.finish()
  }

  /// A download begins.
  ///
  /// - Returns: The identifier for its reports.
  func begin(_ key: Key) -> Int {
    state.withLock { state in
      state.nextID += 1
      state.entries[key, default: Entry()].download = state.nextID
      state.entries[key]?.latest = nil
      return state.nextID
    }
  }

  /// Reports the progress of a download.
  func report(_ progress: DownloadProgress, of download: Int, for key: Key) {
    let continuations = state.withLock { state in
      guard state.entries[key]?.download == download else { return [Int: Continuation]() }
      state.entries[key]?.latest = progress
      return state.entries[key]?.continuations ?? [:]
    }
    for continuation in continuations.values { continuation.yield(progress) }
  }

  /// A download has ended, one way or the other.
  func finish(_ download: Int, for key: Key) {
    let entry = state.withLock { state in
      state.entries[key]?.download == download ? state.entries.removeValue(forKey: key) : nil
    }
    for continuation in entry?.continuations.values ?? [:].values { continuation.finish() }
  }

  /// Ends the streams of a key that wait for a download, unless there is one.
  func settle(_ key: Key, with progress: DownloadProgress?) {
    let continuations = state.withLock { state -> [Int: Continuation] in
      guard let entry = state.entries[key], entry.download == nil else { return [:] }
      state.entries[key] = nil
      return entry.continuations
    }
    for continuation in continuations.values {
      if let progress { continuation.yield(progress) }
      continuation.finish()
    }
  }

  private func remove(_ id: Int, of key: Key) -> Continuation? {
    state.withLock { state in
      let continuation = state.entries[key]?.continuations.removeValue(forKey: id)
      if let entry = state.entries[key], entry.continuations.isEmpty, entry.download == nil {
        state.entries[key] = nil
      }
      return continuation
    }
  }
}
