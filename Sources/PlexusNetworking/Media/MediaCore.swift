internal import Foundation
internal import Plexus
internal import PlexusSupport

/// A download that several may join.
///
/// Those who ask after the loader was cleared want another one.
struct MediaFlight: Hashable, Sendable {
  let url: URL
  let epoch: Int
}

/// What loads files for a ``MediaLoader``, one at a time for each URL.
final class MediaCore: Sendable {
  private struct Clearing: Sendable {
    /// How often everything was cleared.
    var epoch = 0
    /// Whether there are files that could not be set aside, and must not be used.
    var isIncomplete = false
  }

  let folder: MediaFolder
  let gate: HostGate<URL>
  let progress = ProgressTable<URL>()
  let limit: DiskLimit?

  private let client: HTTPClient
  private let retry: RetryPolicy
  private let clock: any Clock<Duration>
  private let clearing = Locked(Clearing())
  /// What has to be done once, before the first file is looked for or comes.
  private let preparation: Multiplexer<Bool>

  init(
    folder: MediaFolder,
    transport: any HTTPTransport,
    rules: HTTPRules,
    byteLimit: Int?,
    connectionsPerHost: Int,
    retry: RetryPolicy,
    clock: any Clock<Duration>
  ) {
    self.folder = folder
    client = HTTPClient(transport: transport, rules: rules, clock: clock)
    self.retry = retry
    self.clock = clock
    gate = HostGate(limit: connectionsPerHost)
    let limit = byteLimit.map(DiskLimit.init(bytes:))
    self.limit = limit
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
    preparation = Multiplexer(id: "MediaLoader", policy: policy) {
      MediaCore.prepare(folder, limit)
      return true
    }
  }

  /// Whether there can be a file for a URL.
  func allows(_ url: URL) -> Bool {
    url.isFileURL ? client.rules.allowsFileURLs : url.isHTTP
  }

  /// Returns the file for a URL if it is there.
  func cachedFile(for url: URL) -> URL? {
    guard allows(url) else { return nil }
    if url.isFileURL {
      let path = url.path(percentEncoded: false)
      return PartFile.length(of: path, followsLinks: true) == nil ? nil : url
    }
    guard !clearing.withLock({ $0.isIncomplete }) else { return nil }
    let file = folder.file(for: url)
    return MediaFolder.length(of: file) == nil ? nil : file
  }

  /// Returns the length of the file for a URL if it is there.
  func length(of url: URL) -> Int64? {
    cachedFile(for: url).flatMap {
      PartFile.length(of: $0.path(percentEncoded: false), followsLinks: url.isFileURL)
    }
  }

  /// Returns the file for a URL if it is there, and what keeps it there.
  func held(_ url: URL) async -> (file: URL, hold: DiskLimit.Hold?)? {
    guard !url.isFileURL, let limit else { return cachedFile(for: url).map { ($0, nil) } }
    await prepare()
    let name = MediaFolder.name(of: url)
    var hold = await limit.hold(name)
    guard let file = cachedFile(for: url), let length = MediaFolder.length(of: file) else {
      return nil
    }
    // Another process may have brought it.
    if hold == nil { hold = limit.insert(name, at: file, length: Int(length)) }
    // Until it was held, somebody may have removed it.
    return cachedFile(for: url).map { ($0, hold) }
  }

  /// Downloads a file, unless it has come in the meantime.
  func download(_ flight: MediaFlight) async throws -> URL {
    let url = flight.url
    let download = progress.begin(url)
    defer { progress.finish(download, for: url) }
    try completeClearing()
    await prepare()
    if let file = await held(url)?.file { return file }
    var failures = 0
    var restarts = 0
    while true {
      do {
        return try await attempt(flight, download)
      } catch is PartOutdated where restarts < 2 {
        restarts += 1
      } catch is PartOutdated {
        throw MediaError.inconsistentLength
      } catch {
        failures += 1
        try Task.checkCancellation()
        guard
          (error as? any ConnectivityFailure)?.isConnectivityFailure == true,
          let wait = retry.delay(after: failures)
        else { throw error }
        try await clock.wait(wait)
      }
    }
  }

  /// What a request of now may join.
  func flight(_ url: URL) -> MediaFlight {
    MediaFlight(url: url, epoch: clearing.withLock { $0.epoch })
  }

  /// Whether nothing was cleared since a flight was asked for.
  func isCurrent(_ flight: MediaFlight) -> Bool {
    clearing.withLock { $0.epoch == flight.epoch }
  }

  /// Removes everything: what is under way is not kept.
  func invalidate() {
    clearing.withLock { clearing in
      clearing.epoch += 1
      do {
        try folder.setAside()
      } catch {
        clearing.isIncomplete = true
      }
    }
    limit?.removeAll()
  }

  /// Sets aside what could not be when everything was cleared.
  func completeClearing() throws {
    try clearing.withLock { clearing in
      guard clearing.isIncomplete else { return }
      try folder.setAside()
      clearing.isIncomplete = false
    }
  }

  /// Removes a file that is of no use.
  func remove(_ url: URL) async {
    guard !url.isFileURL else { return }
    try? FileManager.default.removeItem(at: folder.file(for: url))
    await limit?.remove(MediaFolder.name(of: url))
  }

  private func attempt(_ flight: MediaFlight, _ download: Int) async throws -> URL {
    let url = flight.url
    let turn = HostTurn(gate: gate, key: url)
    try await turn.move(to: url.origin)
    defer { turn.end() }
    guard isCurrent(flight) else { throw MediaError.cleared }
    let (progress, gate) = (progress, gate)
    let changes = Locked<[Int]>([])
    defer { for change in changes.withLock({ $0 }) { gate.removeChange(change, of: url) } }
    let writer = PartWriter(
      folder: folder,
      url: url,
      part: folder.openPart(of: url),
      follow: { change in
        let id = gate.addChange(of: url, change)
        changes.withLock { $0.append(id) }
      },
      report: { progress.report($0, of: download, for: url) }
    )
    do {
      _ = try await client.send(writer.request, to: writer) { target in
        try await turn.move(to: target.origin)
      }
      let part = try writer.finish()
      try clearing.withLock { clearing in
        guard clearing.epoch == flight.epoch else { throw MediaError.cleared }
        do {
          try folder.complete(part, for: url)
        } catch let error as POSIXError where error.code == .ENOENT {
          // The system, or somebody else, has removed the folder meanwhile.
          throw PartOutdated()
        }
      }
    } catch {
      let isCurrent = clearing.withLock { clearing in
        // With the lock: what is kept now will be set aside if everything is cleared.
        let isCurrent = clearing.epoch == flight.epoch
        writer.close(after: error, keepsPart: isCurrent)
        return isCurrent
      }
      if !isCurrent, !(error is CancellationError) { throw MediaError.cleared }
      throw error
    }
    let file = folder.file(for: url)
    if let limit, let length = MediaFolder.length(of: file) {
      limit.insert(MediaFolder.name(of: url), at: file, length: Int(length))
    }
    return file
  }

  private func prepare() async {
    if preparation.cachedValue == nil { _ = try? await preparation.request() }
  }

  /// Old parts and what was cleared go, and the limit learns what is there.
  private static func prepare(_ folder: MediaFolder, _ limit: DiskLimit?) {
    folder.removeParts(before: Date(timeIntervalSinceNow: -partLifetime))
    if let limit {
      for (name, length) in folder.contents() {
        limit.insert(name, at: folder.file(named: name), length: Int(length))
      }
    }
    try? folder.removeAside()
  }

  /// How many seconds a part is kept that nobody continues: a day.
  private static let partLifetime: TimeInterval = 86_400
}

extension RetryPolicy {
  /// How long to wait after so many failures; `nil` if there is no further attempt.
  func delay(after failures: Int) -> Duration? {
    guard failures < attempts else { return nil }
    var wait = min(base, cap)
    for _ in 1..<failures where wait > .zero && wait < cap {
      wait = wait > cap / 2 ? cap : wait * 2
    }
    return jitter > 0 ? wait * (1 + jitter * Double.random(in: -1...1)) : wait
  }
}

extension Clock<Duration> {
  /// The moment after some time.
  func deadline(after duration: Duration) -> Instant { now.advanced(by: duration) }

  /// Sleeps for some time.
  func wait(_ duration: Duration) async throws {
    try await sleep(until: deadline(after: duration), tolerance: nil)
  }
}
