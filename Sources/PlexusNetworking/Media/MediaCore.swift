internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The part of a ``MediaLoader`` that its downloads keep alive.
final class MediaCore: Sendable {
  let gate: HostGate<String>
  let progress = ProgressTable<String>()
  let clock: any Clock<Duration>
  let revalidates: Bool

  private let store: MediaStore
  /// The store in the temporary folder, for when the other one cannot be written.
  private let spare: MediaStore
  private let client: HTTPClient
  private let retry: RetryPolicy
  private let maximumFileBytes: Int64
  private let clearing: Locked<MediaClearing>
  /// The temporary folder, once there are files in it.
  private let spareFolder = Locked<SpareFolder?>(nil)

  init(
    folder: MediaFolder,
    transport: any HTTPTransport,
    rules: HTTPRules,
    limits: MediaLimits,
    revalidates: Bool,
    retry: RetryPolicy,
    clock: any Clock<Duration>
  ) {
    client = HTTPClient(transport: transport, rules: rules, clock: clock)
    self.retry = retry
    self.clock = clock
    self.revalidates = revalidates
    maximumFileBytes = Int64(limits.maximumFileBytes ?? .max)
    gate = HostGate(limit: limits.connectionsPerHost)
    clearing = MediaClearing.of(folder)
    store = MediaStore(folder: folder, byteLimit: limits.byteLimit, clock: clock)
    spare = MediaStore(
      folder: MediaFolder(root: SpareFolder.newRoot()),
      byteLimit: min(limits.byteLimit ?? .max, Self.spareByteLimit),
      clock: clock
    )
  }

  /// The largest number of bytes in the temporary folder.
  private static let spareByteLimit = 64 << 20
  /// The largest number of bytes of a file that is kept in memory, since no disk can be written.
  private static let memoryLimit: Int64 = 64 << 20

  // MARK: - Files

  /// Whether there can be a file for a URL.
  func allows(_ url: URL) -> Bool {
    url.isFileURL ? client.rules.allowsFileURLs : url.isHTTP
  }

  private var readableStores: [MediaStore] { readableStores(clearing.withLock { $0 }) }

  private func readableStores(_ clearing: MediaClearing) -> [MediaStore] {
    (clearing.isIncomplete ? [] : [store]) + (spareFolder.withLock { $0 } == nil ? [] : [spare])
  }

  /// Returns the file of an entry if it is there.
  func cachedFile(for entry: MediaEntry) -> URL? {
    guard allows(entry.url) else { return nil }
    if entry.url.isFileURL { return Self.properties(ofFileAt: entry.url) == nil ? nil : entry.url }
    // A lazy `compactMap` would look twice, and end the program if the file is removed in between.
    for store in readableStores {
      if let file = store.file(entry.name) { return file }
    }
    return nil
  }

  /// Returns the properties of the file of an entry if it is there.
  func properties(of entry: MediaEntry) -> FileProperties? {
    if entry.url.isFileURL { return Self.properties(ofFileAt: entry.url) }
    for store in readableStores {
      if let properties = store.folder.properties(of: entry.name) { return properties }
    }
    return nil
  }

  /// Whether there is a file of an entry, and it is not of a version.
  func hasOther(than version: FileVersion?, _ entry: MediaEntry) -> Bool {
    properties(of: entry).map { $0.version != version } ?? false
  }

  /// Returns the file of an entry if it is there, and a pin that keeps it there.
  func pinned(_ entry: MediaEntry) async -> MediaStore.PinnedFile? {
    if entry.url.isFileURL {
      return Self.properties(ofFileAt: entry.url).map {
        MediaStore.PinnedFile(file: entry.url, properties: $0, store: nil, pin: nil)
      }
    }
    for store in readableStores {
      if let pinned = await store.pinned(entry.name) { return pinned }
    }
    return nil
  }

  /// Returns the file of an entry after its download, if it is there.
  func pinned(_ entry: MediaEntry, after download: MediaDownload) async -> MediaStore.PinnedFile? {
    if case .file(let pinned) = download, pinned.store?.has(entry.name) == true { return pinned }
    return await pinned(entry)
  }

  /// Returns the record of a file, if there is one.
  func record(of pinned: MediaStore.PinnedFile, _ entry: MediaEntry) -> MediaRecord? {
    pinned.store?.folder.record(of: entry.name, pinned.properties.version)
  }

  /// Whether a file has to be confirmed by its server.
  func isStale(_ pinned: MediaStore.PinnedFile, _ entry: MediaEntry) -> Bool {
    guard revalidates, pinned.store != nil else { return false }
    return record(of: pinned, entry).map { $0.staleFrom <= MediaFolder.now } ?? true
  }

  private static func properties(ofFileAt url: URL) -> FileProperties? {
    PartFile.properties(of: url.path(percentEncoded: false), followsLinks: true)
  }

  /// Ends the progress of an existing file, or of a request that has failed, if there is no download.
  ///
  /// - Parameters:
  ///   - item: The file.
  ///   - length: Its length; `nil` if the request has failed.
  func endProgress(of item: MediaItem, with length: Int64?) {
    // Another caller can be about to begin a download.
    guard length != nil || gate.urgency(of: item.key) == nil else { return }
    progress.settle(item.key, with: length.map { DownloadProgress(whole: $0) })
  }

  // MARK: - Removal

  /// A request of a file begins; ``end(_:)`` must follow.
  ///
  /// A request from before a removal must not bring back the file.
  func begin(_ entry: MediaEntry) -> MediaRevisions.Ticket {
    clearing.withLock { $0.revisions.begin(entry.name) }
  }

  /// A request of a file has ended.
  func end(_ ticket: MediaRevisions.Ticket) {
    clearing.withLock { $0.revisions.end(ticket) }
  }

  /// Whether the file was removed since its request began.
  func isRemoved(since ticket: MediaRevisions.Ticket) -> Bool { verdict(ticket) == .removed }

  /// The number of times that everything was removed.
  var epoch: Int { clearing.withLock { $0.revisions.epoch } }

  /// Removes everything: downloads in progress are not kept.
  func invalidate() {
    clearing.withLock { clearing in
      clearing.revisions.removeAll()
      do {
        try store.folder.setAside()
      } catch {
        clearing.isIncomplete = true
      }
      // Also the part of a download in progress.
      try? spare.folder.setAside()
      store.releaseAll()
      spare.releaseAll()
    }
  }

  /// The names of the files and parts that count towards the limit.
  var countedNames: [String] { store.countedNames }

  /// The files and parts that count towards the limit, and the bytes that they count for.
  var countedLengths: [String: Int] { store.countedLengths }

  /// Removes what was set aside.
  func removeAside() throws {
    try completeClearing()
    try store.folder.removeAside()
    try spare.folder.removeAside()
  }

  /// Sets aside what could not be when everything was cleared.
  private func completeClearing() throws {
    try clearing.withLock { clearing in
      guard clearing.isIncomplete else { return }
      try store.folder.setAside()
      clearing.isIncomplete = false
    }
  }

  /// Removes a file and all of its parts: downloads of it in progress are not kept.
  func remove(_ entry: MediaEntry) async throws {
    guard !entry.url.isFileURL else { return }
    let stores = readableStores
    try clearing.withLock { clearing in
      clearing.revisions.remove(entry.name)
      for store in stores {
        let parts = try store.folder.remove(entry.name)
        for name in [entry.name] + parts { store.release(name) }
      }
    }
  }

  /// Removes a file because of a verdict about its content, unless another one has taken its place.
  ///
  /// - Parameters:
  ///   - pinned: The file that the verdict is about.
  ///   - entry: The entry of the file.
  /// - Returns: Whether it was there.
  func discard(_ pinned: MediaStore.PinnedFile, _ entry: MediaEntry) -> Bool {
    guard let store = pinned.store else { return false }
    return clearing.withLock { _ in store.remove(entry.name, pinned.properties.version) }
  }

  /// Removes a file that its server no longer has; downloads that began before are not kept.
  ///
  /// - Returns: Whether there is no newer file.
  private func discard(
    _ known: MediaStore.PinnedFile?,
    _ entry: MediaEntry,
    _ ticket: MediaRevisions.Ticket
  ) -> Bool {
    let isGone = clearing.withLock { clearing in
      guard clearing.revisions.verdict(ticket) == .current else { return false }
      if let known { _ = known.store?.remove(entry.name, known.properties.version) }
      guard readableStores(clearing).allSatisfy({ !$0.has(entry.name) }) else { return false }
      clearing.revisions.keep(ticket)
      return true
    }
    if isGone { removeParts(of: entry, in: readableStores) }
    return isGone
  }

  // MARK: - Downloads

  /// Returns the download that a request of now may share.
  func flight(_ entry: MediaEntry, _ kind: MediaFlight.Kind = .load) -> MediaFlight {
    let (epoch, removal) = clearing.withLock { clearing in
      (clearing.revisions.epoch, clearing.revisions.removal(of: entry.name))
    }
    return MediaFlight(entry: entry, kind: kind, epoch: epoch, removal: removal)
  }

  /// Performs a download.
  func download(_ flight: MediaFlight) async throws -> MediaDownload {
    let entry = flight.entry
    let ticket = begin(entry)
    defer { end(ticket) }
    let report = progress.begin(entry.item.key)
    defer { progress.finish(report, for: entry.item.key) }
    await store.sweepParts()
    switch flight.kind {
    case .load: if let pinned = await pinned(entry) { return .file(pinned) }
    case .reload: removeParts(of: entry, in: [store])
    case .revalidate, .memory: break
    }
    var failures = 0
    var restarts = 0
    var stores = flight.kind == .memory ? [] : writableStores()
    var storageError: (any Error)?
    while true {
      do {
        return try await attempt(flight, ticket, stores, report, isConditional: restarts == 0)
      } catch is PartOutdated where restarts < 2 {
        restarts += 1
      } catch is PartOutdated {
        throw MediaError.inconsistentLength
      } catch let failure as StorageFailure {
        storageError = storageError ?? failure.error
        stores = failure.remainingStores
        if stores.isEmpty { throw StorageFailure(error: storageError ?? failure.error) }
      } catch {
        failures += 1
        try Task.checkCancellation()
        guard flight.kind != .revalidate, let wait = retry.delay(after: failures, error) else {
          let rejection = error as? HTTPStatusError
          throw rejection.map { RejectedRequest(error: $0, item: entry.item) } ?? error
        }
        try await clock.wait(wait)
      }
    }
  }

  /// The stores that a file can be written to, in order.
  private func writableStores() -> [MediaStore] {
    do {
      try completeClearing()
      return [store, spare]
    } catch {
      // Old files are there that must not be used, and would be in the way.
      return [spare]
    }
  }

  private func attempt(
    _ flight: MediaFlight,
    _ ticket: MediaRevisions.Ticket,
    _ stores: [MediaStore],
    _ report: Int,
    isConditional: Bool
  ) async throws -> MediaDownload {
    let entry = flight.entry
    let key = entry.item.key
    let turn = HostTurn(gate: gate, key: key)
    try await turn.move(to: entry.url.origin)
    defer { turn.end() }
    guard epoch == flight.epoch, verdict(ticket) != .removed else { throw MediaError.cleared }
    let (progress, gate) = (progress, gate)
    let changes = Locked<[Int]>([])
    defer { for change in changes.withLock({ $0 }) { gate.removeChange(change, of: key) } }
    let known = flight.kind == .revalidate ? await pinned(entry) : nil
    let record = known.flatMap { self.record(of: $0, entry) }
    let store = flight.kind == .revalidate ? nil : stores.first
    let writer = PartWriter(
      stores: stores,
      entry: entry,
      part: store?.folder.openPart(of: entry.name) { store?.release($0) },
      conditions: isConditional ? record?.validator.conditions ?? [:] : [:],
      maximumBytes: stores.isEmpty
        ? min(maximumFileBytes, Self.memoryLimit) : maximumFileBytes,
      makePart: { try self.makePart(ticket, in: $0, $1) },
      follow: { change in
        let id = gate.addChange(of: key, change)
        changes.withLock { $0.append(id) }
      },
      report: { progress.report($0, of: report, for: key) }
    )
    do {
      let trail = try await client.send(writer.request, to: writer) { target in
        try await turn.move(to: target.origin)
      }
      let outcome = try writer.finish()
      let answer = MediaAnswer(trail, to: entry.url, fields: writer.fields)
      switch outcome {
      case .memory(let data):
        guard verdict(ticket) != .removed else { throw MediaError.cleared }
        return .memory(UnstoredFile(data: data, type: answer["Content-Type"]))
      case .notModified:
        guard record?.validator.isConfirmed(from: answer.location, { answer[$0] }) == true else {
          throw PartOutdated()
        }
        guard let known, try renewRecord(of: known, named: entry.name, ticket, answer)
        else { return .superseded }
        return .file(known)
      case .file(let part, let store):
        let pinned = try keep(part, in: store, ticket, answer)
        writer.close(after: nil, keepsPart: false)
        return pinned.map { .file($0) } ?? .superseded
      }
    } catch {
      let isRemoved = verdict(ticket) == .removed
      writer.close(after: error, keepsPart: !isRemoved)
      // A part that was kept while everything was removed goes, too.
      if verdict(ticket) == .removed {
        if !isRemoved { removeParts(of: entry, in: stores) }
        if !(error is CancellationError) { throw MediaError.cleared }
      }
      if error is Superseded { return .superseded }
      if flight.kind == .revalidate, (error as? HTTPStatusError)?.isGone == true,
        !discard(known, entry, ticket)
      {
        return .superseded
      }
      if var failure = error as? StorageFailure {
        failure.remainingStores = writer.remainingStores
        throw failure
      }
      throw error
    }
  }

  private func verdict(_ ticket: MediaRevisions.Ticket) -> MediaRevisions.Verdict {
    clearing.withLock { $0.revisions.verdict(ticket) }
  }

  private func removeParts(of entry: MediaEntry, in stores: [MediaStore]) {
    for store in stores {
      for part in store.folder.removeParts(of: entry.name) { store.release(part) }
    }
  }

  /// Creates a part of a file, unless a removal or a newer download has overtaken its download.
  ///
  /// Otherwise, bytes would be stored after they were removed, and files would be evicted for them.
  private func makePart(
    _ ticket: MediaRevisions.Ticket,
    in store: MediaStore,
    _ content: HTTPPart
  ) throws -> PartFile {
    try clearing.withLock { clearing in
      switch clearing.revisions.verdict(ticket) {
      case .removed: throw MediaError.cleared
      case .superseded: throw Superseded()
      case .current: break
      }
      let part = try store.folder.makePart(of: ticket.name, content)
      if store === spare, spareFolder.withLock({ $0 }) == nil {
        let folder = SpareFolder(locking: spare.folder.root)
        spareFolder.withLock { $0 = folder }
      }
      return part
    }
  }

  /// Makes a part the file and stores its record, unless a removal or a newer download has overtaken it.
  ///
  /// Both happen in one critical section, so that the record of an older download never replaces a newer one.
  ///
  /// - Returns: The file; `nil` if there is a newer one.
  private func keep(
    _ part: PartFile,
    in store: MediaStore,
    _ ticket: MediaRevisions.Ticket,
    _ answer: MediaAnswer
  ) throws -> MediaStore.PinnedFile? {
    part.stamp()
    guard let properties = part.properties else { throw PartOutdated() }
    let record = MediaRecord(
      version: properties.version,
      now: MediaFolder.now,
      redirects: answer.redirects,
      location: answer.location
    ) { answer[$0] }
    let encoded = try? JSONEncoder().encode(record)
    return try clearing.withLock { clearing in
      switch clearing.revisions.verdict(ticket) {
      case .removed:
        throw MediaError.cleared
      case .superseded:
        part.remove()
        return nil
      case .current:
        let pinned: MediaStore.PinnedFile
        do {
          pinned = try store.complete(part, named: ticket.name, properties)
        } catch let error as POSIXError where error.code == .ENOENT {
          // The system, or another process, has removed the folder meanwhile.
          throw PartOutdated()
        } catch let error as MediaError {
          throw error
        } catch {
          throw StorageFailure(error: error)
        }
        if let encoded { store.folder.store(encodedRecord: encoded, of: ticket.name) }
        clearing.revisions.keep(ticket)
        // Here, since a removal must find the file counted or not there.
        store.release(part)
        store.list(pinned)
        return pinned
      }
    }
  }

  // MARK: - Records

  /// Updates the record of a file that its server has confirmed.
  ///
  /// - Returns: Whether it is still the file of its name.
  private func renewRecord(
    of file: MediaStore.PinnedFile,
    named name: String,
    _ ticket: MediaRevisions.Ticket,
    _ answer: MediaAnswer
  ) throws -> Bool {
    try clearing.withLock { clearing in
      switch clearing.revisions.verdict(ticket) {
      case .removed: throw MediaError.cleared
      case .superseded: return false
      case .current:
        guard let folder = file.store?.folder else { return false }
        return folder.changeRecord(of: name, file.properties.version) {
          $0.update(now: MediaFolder.now, redirects: answer.redirects) { answer[$0] }
        }
      }
    }
  }

  /// Stores the digest of a file with its record, unless there is another file by now.
  func store(digest: String, of name: String, _ version: FileVersion, in folder: MediaFolder) {
    _ = clearing.withLock { _ in
      folder.changeRecord(of: name, version, creates: true) { $0.digest = digest }
    }
  }
}

extension HTTPStatusError {
  /// Whether the server no longer has what was requested.
  fileprivate var isGone: Bool { status == 404 || status == 410 }
}
