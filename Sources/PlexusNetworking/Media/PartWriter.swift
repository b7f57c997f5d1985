internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The part that was to be continued no longer fits: the file has to be downloaded from the beginning.
struct PartOutdated: Error {}

/// The file of a download that began later is there.
struct Superseded: Error {}

/// A file could not be written, for instance on a full or read-only disk.
struct StorageFailure: Error {
  /// The error of the system.
  let error: any Error
  /// The stores that have not been tried.
  var remainingStores: [MediaStore] = []

  init(error: any Error) {
    // Foundation wraps the errors of folders.
    self.error = (error as? CocoaError)?.underlying as? POSIXError ?? error
  }
}

/// Writes an answer to a part as it arrives, or to memory if there is no store.
final class PartWriter: HTTPReceiver {
  /// The outcome of an answer.
  enum Outcome: Sendable {
    case file(PartFile, MediaStore)
    case memory(Data)
    /// The server has confirmed the existing file (304).
    case notModified
  }

  /// A closure that creates a part in a store, for what is to be written to it.
  typealias MakePart = @Sendable (MediaStore, HTTPPart) throws -> PartFile

  private struct State: Sendable {
    var part: PartFile?
    /// The bytes that are there, and what continues them.
    var content: HTTPPart
    /// The store of the part, as an index; the number of stores for memory.
    var store = 0
    var memory: Data?
    /// The bytes that the part counts for, and what keeps the limit from removing it.
    var reservation: Int64 = -1
    var pin: FilePin?
    var fields: [String: String] = [:]
    /// Whether there is an answer to the request.
    var hasBegun = false
    var isNotModified = false
    /// The error that the status stands for, whose body is collected.
    var rejection: HTTPURLResponse?
    var explanation = Data()
    var isClosed = false
  }

  private let stores: [MediaStore]
  private let entry: MediaEntry
  private let conditions: [String: String]
  private let maximumBytes: Int64
  private let create: MakePart
  private let follow: @Sendable (@escaping HostGate<String>.Change) -> Void
  private let report: @Sendable (DownloadProgress) -> Void
  private let state: Locked<State>

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - stores: The stores to try in this order; none for memory.
  ///   - entry: The file to download.
  ///   - part: The existing part in the first store, with what continues it.
  ///   - conditions: The header fields that ask whether the file has changed; empty if it is wanted anyway.
  ///   - maximumBytes: The largest number of bytes of the file.
  ///   - makePart: Creates a part; throws an error if the file is no longer wanted.
  ///   - follow: Receives the closure that changes the priority of the transfer.
  ///   - report: Called after each piece.
  init(
    stores: [MediaStore],
    entry: MediaEntry,
    part: (file: PartFile, part: HTTPPart)?,
    conditions: [String: String] = [:],
    maximumBytes: Int64,
    makePart: @escaping MakePart,
    follow: @escaping @Sendable (@escaping HostGate<String>.Change) -> Void,
    report: @escaping @Sendable (DownloadProgress) -> Void
  ) {
    self.stores = stores
    self.entry = entry
    self.conditions = conditions
    self.maximumBytes = maximumBytes
    create = makePart
    self.follow = follow
    self.report = report
    state = Locked(State(part: part?.file, content: part?.part ?? HTTPPart()))
  }

  /// The request to send.
  var request: URLRequest {
    var request = URLRequest(url: entry.url)
    for (name, value) in entry.item.headers { request.setValue(value, forHTTPHeaderField: name) }
    // A coded body has no length that could be verified, and no parts.
    request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    for fields in [state.withLock { $0.content.conditions }, conditions] {
      for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    }
    return request
  }

  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
    follow(change)
  }

  // MARK: - The answer

  func begin(_ response: HTTPURLResponse) throws {
    let field = { response.value(forHTTPHeaderField: $0) }
    let coding = field("Content-Encoding")?.lowercased() ?? "identity"
    let length = coding == "identity" ? field("Content-Length").flatMap { Int64($0) } : nil
    var replaced: PartFile?
    let old = try state.withLock { state -> FilePin? in
      guard !state.isClosed else { throw CancellationError() }
      switch response.statusCode {
      case 206 where state.content.length > 0:
        guard coding == "identity",
          let total = state.content.total(continuedFrom: location(response), by: field)
        else { throw PartOutdated() }
        state.content.total = total
      case 206:
        // No part was requested.
        throw MediaError.inconsistentLength
      case 200..<300 where response.statusCode != 204 && response.statusCode != 205:
        replaced = state.part.take()
        replaced?.remove()
        let validator = coding == "identity" ? HTTPPart.validator(field) : ""
        let isKept = validator.utf8.count <= MediaFolder.validatorLimit
        state.content = HTTPPart(
          validator: isKept ? validator : "",
          location: location(response),
          total: length
        )
        try checkLength(length)
        try makePart(&state)
      case 304 where !conditions.isEmpty:
        state.isNotModified = true
      case 416 where state.content.length > 0:
        throw PartOutdated()
      default:
        state.rejection = response
        state.hasBegun = true
        return nil
      }
      try checkLength(state.content.total)
      for name in Self.recorded { state.fields[name] = field(name) }
      state.hasBegun = true
      return reserve(&state)
    }
    withExtendedLifetime(old) {}
    // It is one of the first store: only there a part is looked for.
    if let replaced { stores.first?.release(replaced) }
    if (200..<300).contains(response.statusCode) { reportProgress() }
  }

  func receive(_ bytes: Data) throws {
    let (old, isFile) = try state.withLock { state -> (FilePin?, Bool) in
      guard !state.isClosed, state.hasBegun, !state.isNotModified else { throw CancellationError() }
      if state.rejection != nil {
        let room = BodyCollector.errorBytes - state.explanation.count
        state.explanation.append(bytes.prefix(room))
        if bytes.count > room { throw EnoughReceived() }
        return (nil, false)
      }
      let end = state.content.length + Int64(bytes.count)
      if let total = state.content.total, end > total { throw MediaError.inconsistentLength }
      try checkLength(end)
      if let part = state.part {
        do {
          try part.write(bytes, at: state.content.length)
        } catch {
          throw StorageFailure(error: error)
        }
      } else {
        state.memory?.append(bytes)
      }
      state.content.length = end
      return (reserve(&state), true)
    }
    withExtendedLifetime(old) {}
    if isFile { reportProgress() }
  }

  /// The answer has ended.
  func finish() throws -> Outcome {
    try state.withLock { state in
      guard !state.isClosed, state.hasBegun else { throw URLError(.badServerResponse) }
      if let response = state.rejection { throw Self.error(response, body: state.explanation) }
      if state.isNotModified {
        state.isClosed = true
        return .notModified
      }
      if let total = state.content.total, state.content.length != total {
        throw URLError(.networkConnectionLost)
      }
      state.isClosed = true
      if let memory = state.memory { return .memory(memory) }
      guard let part = state.part else { throw URLError(.badServerResponse) }
      return .file(part, stores[state.store])
    }
  }

  /// The header fields of the answer that a record needs.
  var fields: [String: String] { state.withLock { $0.fields } }

  /// The stores that have not failed, after one has.
  var remainingStores: [MediaStore] {
    Array(stores.dropFirst(state.withLock { $0.store } + 1))
  }

  /// Ends the transfer: nothing more is written.
  ///
  /// After an error, the part stays if it is wanted and can be continued; otherwise it is removed. On a full
  /// disk it would only be in the way.
  func close(after error: (any Error)?, keepsPart: Bool) {
    let (part, store, pin, isLeft, offset) = state.withLock { state in
      state.isClosed = true
      let isOfNoUse =
        error is HTTPStatusError || error is PartOutdated || error is MediaError
        || error is StorageFailure || error is Superseded || state.content.conditions.isEmpty
      let isLeft = error != nil && keepsPart && !isOfNoUse
      if error != nil && !isLeft { state.part?.remove() }
      let store = state.store < stores.count ? stores[state.store] : nil
      return (state.part.take(), store, state.pin.take(), isLeft, state.content.length)
    }
    if let part, let store {
      if isLeft {
        _ = store.reserve(part, bytes: offset)
      } else {
        store.release(part)
      }
    }
    withExtendedLifetime((part, pin)) {}
  }

  // MARK: - Storage

  /// Creates the part in the first store that can be written.
  private func makePart(_ state: inout State) throws {
    var first: (any Error)?
    for index in state.store..<stores.count {
      do {
        state.part = try create(stores[index], state.content)
        state.store = index
        return
      } catch let error where error is MediaError || error is Superseded {
        throw error
      } catch {
        first = first ?? error
      }
    }
    if let first {
      state.store = stores.count
      throw StorageFailure(error: first)
    }
    state.memory = Data()
  }

  /// Counts the bytes of the part towards the limit: all that are announced, or a little more than there are.
  ///
  /// - Returns: The pin before, which must not be released with the lock.
  private func reserve(_ state: inout State) -> FilePin? {
    guard let part = state.part,
      state.content.length > state.reservation || state.reservation < 0
    else { return nil }
    state.reservation = state.content.total ?? state.content.length + Self.reservationStep
    let old = state.pin
    state.pin = stores[state.store].reserve(part, bytes: state.reservation)
    return old
  }

  private static let reservationStep: Int64 = 1 << 20

  /// The place that has answered, as the name of a part has it.
  private func location(_ response: HTTPURLResponse) -> String {
    let location = response.url.flatMap { MediaAnswer.location($0, besides: entry.url) }
    return String(location?.prefix(MediaFolder.locationLength) ?? "")
  }

  private func checkLength(_ length: Int64?) throws {
    if let length, length > maximumBytes { throw MediaError.fileTooLarge(limit: maximumBytes) }
  }

  private func reportProgress() {
    let content = state.withLock { $0.content }
    report(DownloadProgress(receivedBytes: content.length, totalBytes: content.total))
  }

  // MARK: - Header fields

  /// The header fields that a record needs.
  private static let recorded = [
    "Content-Type", "ETag", "Last-Modified", "Cache-Control", "Expires", "Date", "Age", "Vary",
  ]

  private static func error(_ response: HTTPURLResponse, body: Data) -> HTTPStatusError {
    HTTPStatusError(
      status: response.statusCode,
      url: response.url,
      headers: HTTPHeaders(response),
      body: body,
      retryAfter: response.value(forHTTPHeaderField: "Retry-After")
        .flatMap { HTTPFreshness.retryAfter($0, now: MediaFolder.now) }
        .map { .seconds($0) }
    )
  }
}
