/// A state that is saved in a cacher when it changes.
///
/// Create one with ``StatefulBroadcaster/persist(in:as:delay:clock:)``, and keep it for as long as changes are to be
/// saved.
///
/// ```swift
/// func restoreSettings(from cacher: any Cacher<Settings>) async throws {
///   let settings = CurrentValue(try await cacher.entry(forKey: "settings")?.value ?? Settings())
///   let saved = settings.persist(in: cacher, as: "settings").register()
///   settings.update { $0.volume = 5 }  // is written after half a second
///   try await saved.flush()  // is written at once
/// }
/// ```
///
/// ## Timing
///
/// The first unsaved change starts the delay. When it has passed, the newest state is written, once for all changes until
/// then. It is no debounce: a source that changes all the time is saved once per delay. Changes during a write are
/// written after it, together. Two writes of one key never overlap.
///
/// A part of a state is made by the task that writes it, and is written only if it has changed. Its delay starts with the
/// first change of the whole state, so that it can be written earlier.
///
/// The state at the call of `persist` is not written unless it changes. Call it before the first change.
///
/// ## Ending
///
/// When the source ends, or the saved state is released, an unsaved change is written at once, in a task of its own. A
/// saved state does not keep its source alive, and counts as one of its subscribers. If the source ends, the saved state
/// can still be flushed and cleared.
///
/// A process that exits does not wait for that task: call ``flush()`` or ``MuxRepository/flushAll()`` before.
///
/// ## Failing writes
///
/// A write that has failed is tried again after a pause: the delay, but at least a second, doubled after each further
/// failure up to a minute. Changes meanwhile are written with it. After the release, eight failures in succession end
/// the attempts, and so does a newer saved state of the same key that has saved. A cacher that takes longer than the
/// default ``CachePolicy/storageTimeout`` has failed.
///
/// ``events(bufferingPolicy:)`` reports each failure as ``CacheEvent/cacherFailed(key:error:)``, and
/// ``CacheStatistics/cacherErrors`` counts them.
///
/// ## Signing out
///
/// ``clear()`` and ``MuxRepository/clearAll()`` drop what is unsaved, and remove the stored state. A write in progress
/// cannot bring it back. After that, nothing is written until the source changes again. In a repository, this includes a
/// last write that outlives its saved state.
///
/// Saved states of equal cachers and keys, such as that of a screen that is opened again, share their writes, clears and
/// statistics.
///
/// ## Topics
///
/// ### Writing
/// - ``flush()``
///
/// ### Signing out
/// - ``register(in:)``
/// - ``clear()``
/// - ``invalidate()``
/// - ``pause()``
/// - ``resume()``
/// - ``removeStored()``
/// - ``clearMemory()``
///
/// ### Monitoring
/// - ``events(bufferingPolicy:)``
/// - ``statistics``
/// - ``name``
public final actor SavedState {
  nonisolated let core: any SavedStateCore

  init(_ core: any SavedStateCore) {
    self.core = core
  }

  deinit {
    core.release()
  }

  /// Drops what is unsaved, and removes the stored state.
  ///
  /// A write in progress ends first, so that it cannot bring the state back. Nothing is written until the source changes
  /// again; a change during this call is written after the removal. When the call returns, the removal is durable. It
  /// completes even if the calling task is cancelled.
  ///
  /// - Throws: The error of the cacher if the stored state may still exist. The next ``flush()`` with a change, or the
  ///   next call, tries again to remove it.
  public nonisolated func clear() async throws {
    invalidate()
    try await removeStored()
  }

  /// Returns a stream of the events of the key from now on: its writes, failures and clears.
  ///
  /// - Parameter bufferingPolicy: The policy for events that the reader has not read yet.
  /// - Returns: The stream. It ends when it is dropped, when the task that iterates it is cancelled, or when the last
  ///   saved state of the key was released and its last write has ended.
  public nonisolated func events(
    bufferingPolicy: BufferingPolicy<CacheEvent> = .unbounded
  ) -> AsyncStream<CacheEvent> {
    core.events(bufferingPolicy: bufferingPolicy)
  }

  /// Adds the saved state to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository, which clears and flushes its members together.
  /// - Returns: The saved state itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(self)
    return self
  }
}

extension SavedState: RepositoryMember {
  /// Writes what is unsaved, without waiting for the delay or for the pause after a failure.
  ///
  /// A write in progress is awaited. If the source has changed since it began, or if it fails, the newest state is
  /// written once more. The call completes even if the calling task is cancelled. Inside a call of the cacher, it writes
  /// but does not wait, which would be a deadlock.
  ///
  /// - Throws: A ``CacherError`` that names the key. The write is tried again later.
  public nonisolated func flush() async throws {
    try await core.flush()
  }

  /// Drops what is unsaved, and the result of a write in progress.
  public nonisolated func invalidate() { core.invalidate() }

  /// Drops what is unsaved, the result of a write in progress, and all changes before ``resume()``.
  public nonisolated func pause() { core.pause() }

  /// Resumes saving the changes that follow this call.
  public nonisolated func resume() { core.resume() }

  /// Removes the stored state, durably when it returns.
  ///
  /// - Throws: The error of the cacher, which may still have it.
  public nonisolated func removeStored() async throws {
    try await core.removeStored()
  }

  /// Does nothing: an unsaved state belongs to the source.
  public nonisolated func clearMemory() {}

  /// The key, by which the saved state appears in the errors and statistics of a repository.
  public nonisolated var name: String { core.name }

  /// The statistics of the key, with the number of failures of the cacher.
  public nonisolated var statistics: CacheStatistics? { core.statistics }
}
