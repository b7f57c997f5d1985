internal import Foundation
internal import Plexus

/// A download that several may join.
///
/// Those who ask after the loader was cleared want another one.
struct MediaFlight: Hashable, Sendable {
  let url: URL
  let epoch: Int
}

/// What loads files for a ``MediaLoader``, one at a time for each URL.
final class MediaCore: Sendable {
  let folder: MediaFolder
  let gate: HostGate<URL>
  let progress = ProgressTable<URL>()
  let limit: DiskLimit?

  private let transport: any MediaTransport
  private let retry: RetryPolicy
  private let clock: any Clock<Duration>
  /// How often everything was cleared.
  private let epoch = Locked(0)
  private let isPrepared = Locked(false)

  init(
    folder: MediaFolder,
    transport: any MediaTransport,
    byteLimit: Int?,
    connectionsPerHost: Int,
    retry: RetryPolicy,
    clock: any Clock<Duration>
  ) {
    self.folder = folder
    self.transport = transport
    self.retry = retry
    self.clock = clock
    gate = HostGate(limit: connectionsPerHost)
    limit = byteLimit.map(DiskLimit.init(bytes:))
  }

  /// Returns the file for a URL if it is there.
  func cachedFile(for url: URL) -> URL? {
    let file = url.isFileURL ? url : folder.file(for: url)
    return MediaFolder.length(of: file) == nil ? nil : file
  }

  /// Returns the file for a URL if it is there, and what keeps it there.
  func held(_ url: URL) async -> (file: URL, hold: DiskLimit.Hold?)? {
    if url.isFileURL { return cachedFile(for: url).map { ($0, nil) } }
    prepare()
    let name = MediaFolder.name(of: url)
    var hold = await limit?.hold(name)
    let file = folder.file(for: url)
    guard let length = MediaFolder.length(of: file) else { return nil }
    // Another process may have brought it.
    if let limit, hold == nil { hold = limit.insert(name, at: file, length: Int(length)) }
    // Until it was held, somebody may have removed it.
    guard MediaFolder.length(of: file) != nil else { return nil }
    return (file, hold)
  }

  /// Downloads a file, unless it has come in the meantime.
  func download(_ flight: MediaFlight) async throws -> URL {
    let url = flight.url
    let download = progress.begin(url)
    defer { progress.finish(download, for: url) }
    prepare()
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
    MediaFlight(url: url, epoch: epoch.withLock { $0 })
  }

  /// Removes everything: what is under way is not kept.
  func cutOff() {
    epoch.withLock { epoch in
      epoch += 1
      folder.setAside()
    }
    limit?.removeAll()
  }

  private func attempt(_ flight: MediaFlight, _ download: Int) async throws -> URL {
    let url = flight.url
    let begin = flight.epoch
    let host = "\(url.host() ?? ""):\(url.port ?? -1)"
    try await gate.enter(host, for: url)
    defer { gate.leave(host) }
    let progress = progress
    let writer = PartWriter(folder: folder, url: url, part: folder.openPart(of: url)) {
      progress.report($0, of: download, for: url)
    }
    do {
      try await transport.send(writer.request, to: writer)
      let part = try writer.finish()
      try epoch.withLock { epoch in
        guard epoch == begin else { throw MediaError.cleared }
        try folder.complete(part, for: url)
      }
    } catch {
      writer.close(after: error)
      if epoch.withLock({ $0 }) != begin, !(error is CancellationError) { throw MediaError.cleared }
      throw error
    }
    let file = folder.file(for: url)
    if let limit, let length = MediaFolder.length(of: file) {
      limit.insert(MediaFolder.name(of: url), at: file, length: Int(length))
    }
    return file
  }

  /// What has to be done once, before the first file: old parts go, and the limit learns what is there.
  private func prepare() {
    let isFirst = isPrepared.withLock { isPrepared in
      defer { isPrepared = true }
      return !isPrepared
    }
    guard isFirst else { return }
    folder.removeParts(before: Date(timeIntervalSinceNow: -MediaCore.partLifetime))
    guard let limit else { return }
    for (name, length) in folder.contents() {
      limit.insert(name, at: folder.file(named: name), length: Int(length))
    }
  }

  /// How many seconds a part is kept that nobody continues: a day.
  private static let partLifetime: TimeInterval = 86_400
}

extension RetryPolicy {
  /// How long to wait after so many failures; `nil` if there is no further attempt.
  func delay(after failures: Int) -> Duration? {
    guard failures < attempts else { return nil }
    let doubled = min(cap, base * (1 << min(failures - 1, 30)))
    return doubled * (1 + jitter * Double.random(in: -1...1))
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
