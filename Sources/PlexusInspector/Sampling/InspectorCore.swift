internal import LoopbackOrigin
internal import Plexus
internal import PlexusSupport

/// The sources of an inspector, its open pages, and the task that sends them what has changed.
///
/// The task runs while a page is open. It sends at most four frames a second to each page, and none to a page that has not
/// read the previous one.
final class InspectorCore: Sendable {
  /// A source and its name.
  private struct Listed: Sendable {
    let id: Int
    let name: String
    let source: any InspectedSource
  }

  /// An open page.
  private struct Page: Sendable {
    let stream: OriginStream
    /// The source whose details it shows.
    let shown: Int?
    /// The revision of the details that it has.
    var revision = 0
  }

  private struct State: Sendable {
    var sources: [Listed] = []
    var lastID = 0
    var pages: [Int: Page] = [:]
    var sampler: Task<Void, Never>?
    var isStopped = false
    /// The number of sources that found no place.
    var omittedCount = 0
    var isQuerying = false
  }

  /// The maximum number of open pages.
  static let pageLimit = 4
  /// The maximum number of characters of a name, besides a number.
  private static let nameLimit = 80
  /// The maximum number of sources.
  static let sourceLimit = 256
  /// The times before and after the logs are read, a frame apart.
  private static let pauses = (reading: Duration.milliseconds(50), rest: Duration.milliseconds(200))

  let disclosure: Disclosure
  private let clock: any Clock<Duration>
  /// The time since the inspector was created.
  private let elapsed: @Sendable () -> Duration
  /// Distinguishes this inspector from the one before a restart.
  private let run = AccessToken().text
  private let pace = Pace()
  private let state = Locked(State())

  init(showsValues: Bool, clock: any Clock<Duration>) {
    disclosure = Disclosure(showsValues: showsValues)
    self.clock = clock
    elapsed = Self.elapsed(on: clock)
  }

  deinit {
    stop()
  }

  private static func elapsed<C: Clock<Duration>>(on clock: C) -> @Sendable () -> Duration {
    let start = clock.now
    return { start.duration(to: clock.now) }
  }

  // MARK: - Sources

  /// Adds a source.
  ///
  /// A name that a live source has gets a number; a source that has ended is replaced.
  func add(_ source: any InspectedSource, named name: String) {
    let name = name.shortened(to: Self.nameLimit)
    let listed = state.withLock { $0.sources }
    let ended = Set(listed.filter(\.source.hasEnded).map(\.id))
    let (isAdded, released) = state.withLock { state -> (Bool, [Listed]) in
      guard !state.isStopped else { return (false, []) }
      var released = state.sources.filter { ended.contains($0.id) && $0.name == name }
      if state.sources.count - released.count >= Self.sourceLimit {
        released += state.sources.filter { ended.contains($0.id) }.prefix(1)
      }
      let ids = Set(released.map(\.id))
      state.sources.removeAll { ids.contains($0.id) }
      guard state.sources.count < Self.sourceLimit else {
        state.omittedCount += 1
        return (false, released)
      }
      state.lastID += 1
      let free = Self.free(name, among: Set(state.sources.map(\.name)))
      state.sources.append(Listed(id: state.lastID, name: free, source: source))
      return (true, released)
    }
    for listed in released { listed.source.stop() }
    if isAdded { source.start(pace) } else { source.stop() }
  }

  private static func free(_ name: String, among names: Set<String>) -> String {
    guard names.contains(name) else { return name }
    var number = 2
    while names.contains("\(name) \(number)") { number += 1 }
    return "\(name) \(number)"
  }

  /// Removes the sources with a name.
  func remove(named name: String) {
    let name = name.shortened(to: Self.nameLimit)
    let removed = state.withLock { state in
      let removed = state.sources.filter { $0.name == name }
      state.sources.removeAll { $0.name == name }
      return removed
    }
    for listed in removed { listed.source.stop() }
  }

  /// Stops the task and all sources, and ends the pages.
  func stop() {
    let (sources, pages, sampler) = state.withLock { state in
      state.isStopped = true
      defer { (state.sources, state.pages, state.sampler) = ([], [:], nil) }
      return (state.sources, state.pages, state.sampler)
    }
    sampler?.cancel()
    pace.end()
    for listed in sources { listed.source.stop() }
    for page in pages.values { page.stream.finish() }
  }

  // MARK: - Pages

  /// The number of open pages.
  var pageCount: Int { state.withLock { $0.pages.count } }

  /// Opens a page.
  ///
  /// - Parameter shown: The source whose details it shows, if any.
  /// - Returns: The stream of the page, or `nil` if there are too many.
  func openPage(showing shown: Int?) -> OriginStream? {
    state.withLock { state in
      guard !state.isStopped, state.pages.count < Self.pageLimit else { return nil }
      state.lastID += 1
      let id = state.lastID
      let stream = OriginStream { [weak self] in self?.closePage(id) }
      state.pages[id] = Page(stream: stream, shown: shown)
      if state.sampler == nil { state.sampler = sampler() }
      return stream
    }
  }

  private func closePage(_ id: Int) {
    let released = state.withLock { state -> (Page?, Task<Void, Never>?) in
      let page = state.pages.removeValue(forKey: id)
      return (page, state.pages.isEmpty ? state.sampler.take() : nil)
    }
    released.1?.cancel()
  }

  /// Returns the task that sends frames; on a thread of its own, so that it runs although the pool is blocked.
  private func sampler() -> Task<Void, Never> {
    Task.detached(executorPreference: HandlerExecutor(), priority: .utility) {
      [weak self, clock, pace] in
      var isFirst = true
      while !Task.isCancelled {
        self?.prepare()
        pace.beat(isFirst: isFirst)
        isFirst = false
        try? await clock.sleep(for: Self.pauses.reading)
        guard !Task.isCancelled, let self else { return }
        sendFrames()
        try? await clock.sleep(for: Self.pauses.rest)
      }
    }
  }

  private func prepare() {
    let (sources, shown) = state.withLock { ($0.sources, Set($0.pages.values.compactMap(\.shown))) }
    let time = elapsed()
    for listed in sources where shown.contains(listed.id) { listed.source.prepare(at: time) }
  }

  private func sendFrames() {
    let (sources, pages, omittedCount) = state.withLock { ($0.sources, $0.pages, $0.omittedCount) }
    let overview = JSON.array(
      sources.map { listed in
        let numbers = listed.source.numbers
        return [
          "id": .int(listed.id), "name": .string(listed.name),
          "kind": .string(listed.source.kind.rawValue), "ended": .bool(numbers == nil),
          "numbers": numbers ?? .object([]),
        ]
      }
    )
    for (id, page) in pages where page.stream.isWritable {
      var frame: JSON = [
        "run": .string(run), "time": .decimal(wallClockTime().seconds),
        "showsValues": .bool(disclosure.showsValues), "omittedSources": .int(omittedCount),
        "sources": overview,
      ]
      var revision = page.revision
      if let shown = page.shown, let listed = sources.first(where: { $0.id == shown }) {
        let (details, newRevision) = listed.source.details(since: page.revision)
        frame = frame.adding(["shown": .int(shown), "details": details])
        revision = newRevision
      }
      let bytes = Array("data: ".utf8) + frame.bytes + Array("\n\n".utf8)
      guard page.stream.write(bytes) else { continue }
      state.withLock { $0.pages[id]?.revision = revision }
    }
  }

  // MARK: - Questions

  /// The answer to a question of a page.
  enum Answer: Sendable, Equatable {
    case found(JSON)
    case missing
    /// Another question is being answered.
    case busy
  }

  /// Answers a question on a source, one at a time.
  func answer(
    on id: Int,
    _ question: (any InspectedSource) -> JSON?
  ) -> Answer {
    let source = state.withLock { state -> (any InspectedSource)?? in
      guard !state.isQuerying else { return nil }
      let source = state.sources.first { $0.id == id }?.source
      state.isQuerying = source != nil
      return .some(source)
    }
    guard let source else { return .busy }
    guard let source else { return .missing }
    defer { state.withLock { $0.isQuerying = false } }
    return question(source).map(Answer.found) ?? .missing
  }
}
