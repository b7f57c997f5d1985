internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
internal import PlexusSupport
#endif

/// The part that there is no longer fits: it has to be loaded from the beginning.
struct PartOutdated: Error {}

/// Writes an answer to a file as it arrives.
final class PartWriter: HTTPReceiver {
  private struct State: Sendable {
    var part: PartFile?
    var validator: String
    var offset: Int64
    var total: Int64?
    /// Whether there is an answer to what was asked.
    var hasBegun = false
    var hasFailedToWrite = false
    var isClosed = false
  }

  private let folder: MediaFolder
  private let url: URL
  private let follow: @Sendable (@escaping HostGate<URL>.Change) -> Void
  private let report: @Sendable (DownloadProgress) -> Void
  private let state: Locked<State>

  /// Creates a writer.
  ///
  /// - Parameters:
  ///   - folder: Where it is written.
  ///   - url: What is loaded.
  ///   - part: What there is already, and what tells whether it fits.
  ///   - follow: What to give that which changes the priority of the transfer.
  ///   - report: What to call after each piece.
  init(
    folder: MediaFolder,
    url: URL,
    part: (file: PartFile, validator: String)?,
    follow: @escaping @Sendable (@escaping HostGate<URL>.Change) -> Void,
    report: @escaping @Sendable (DownloadProgress) -> Void
  ) {
    self.folder = folder
    self.url = url
    self.follow = follow
    self.report = report
    state = Locked(
      State(part: part?.file, validator: part?.validator ?? "", offset: part?.file.size ?? 0)
    )
  }

  /// What is asked for.
  var request: URLRequest {
    var request = URLRequest(url: url)
    // What is coded has no length that could be verified, and no parts.
    request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    let (offset, validator) = state.withLock { ($0.offset, $0.validator) }
    if offset > 0 {
      request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range")
      request.setValue(validator, forHTTPHeaderField: "If-Range")
    }
    return request
  }

  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
    follow(change)
  }

  func begin(_ response: HTTPURLResponse) throws {
    let field = { response.value(forHTTPHeaderField: $0) }
    let coding = field("Content-Encoding")?.lowercased() ?? "identity"
    let length = coding == "identity" ? field("Content-Length").flatMap { Int64($0) } : nil
    try state.withLock { state in
      guard !state.isClosed else { throw CancellationError() }
      switch response.statusCode {
      case 206 where state.offset > 0:
        guard
          coding == "identity", let range = Self.contentRange(field("Content-Range")),
          range.start == state.offset, Self.fits(state.validator, field)
        else { throw PartOutdated() }
        state.total = range.total
      case 206:
        // Nobody has asked for a part.
        throw MediaError.inconsistentLength
      case 200..<300:
        state.part?.remove()
        state.validator = coding == "identity" ? Self.validator(field) : ""
        state.offset = 0
        state.total = length
        state.part = try folder.makePart(of: url, validator: state.validator)
      case 416 where state.offset > 0:
        throw PartOutdated()
      default:
        let now = Int(Date().timeIntervalSince1970)
        throw HTTPStatusError(
          status: response.statusCode,
          url: response.url,
          headers: HTTPHeaders(response),
          retryAfter: field("Retry-After").flatMap { HTTPFreshness.retryAfter($0, now: now) }
            .map { .seconds($0) }
        )
      }
      state.hasBegun = true
    }
    reportProgress()
  }

  func receive(_ bytes: Data) throws {
    try state.withLock { state in
      guard !state.isClosed, state.hasBegun, let part = state.part else {
        throw CancellationError()
      }
      if let total = state.total, state.offset + Int64(bytes.count) > total {
        throw MediaError.inconsistentLength
      }
      do {
        try part.write(bytes, at: state.offset)
      } catch {
        state.hasFailedToWrite = true
        throw error
      }
      state.offset += Int64(bytes.count)
    }
    reportProgress()
  }

  /// The answer has ended: returns the complete file.
  func finish() throws -> PartFile {
    try state.withLock { state in
      guard !state.isClosed, state.hasBegun, let part = state.part else {
        throw URLError(.badServerResponse)
      }
      if let total = state.total, state.offset != total { throw URLError(.networkConnectionLost) }
      state.isClosed = true
      try part.synchronize()
      return part
    }
  }

  /// The transfer has failed: nothing is written any more.
  ///
  /// What is there stays if it is wanted and can be continued after such an error; else it is removed. On a
  /// disk that is full it would only be in the way.
  func close(after error: any Error, keepsPart: Bool) {
    let part = state.withLock { state in
      state.isClosed = true
      let isOfNoUse =
        error is HTTPStatusError || error is PartOutdated || error is MediaError
        || state.hasFailedToWrite || state.validator.isEmpty || state.offset == 0
      if isOfNoUse || !keepsPart { state.part?.remove() }
      return state.part.take()
    }
    withExtendedLifetime(part) {}
  }

  private func reportProgress() {
    let (offset, total) = state.withLock { ($0.offset, $0.total) }
    report(DownloadProgress(receivedBytes: offset, totalBytes: total))
  }

  /// What tells whether a part fits: a strong entity tag, or a date of modification that is older than the
  /// answer, since a file may change twice in a second (RFC 9110, 8.8.2.2); empty if there is neither.
  private static func validator(_ field: (String) -> String?) -> String {
    if let tag = field("ETag") {
      return tag.hasPrefix("W/") || tag.utf8.count > MediaFolder.validatorLimit ? "" : tag
    }
    guard
      let date = field("Last-Modified"), date.utf8.count <= MediaFolder.validatorLimit,
      let changed = HTTPDate.seconds(date),
      let sent = field("Date").flatMap({ HTTPDate.seconds($0) }),
      changed < sent
    else { return "" }
    return date
  }

  /// Whether an answer belongs to what has this validator, by all that it says.
  private static func fits(_ validator: String, _ field: (String) -> String?) -> Bool {
    if HTTPDate.seconds(validator) != nil {
      return field("Last-Modified").map { $0 == validator } ?? true
    }
    return field("ETag").map { $0 == validator } ?? true
  }

  /// Reads `bytes 5-9/10`.
  private static func contentRange(_ text: String?) -> (start: Int64, total: Int64)? {
    guard let text, text.lowercased().hasPrefix("bytes ") else { return nil }
    let words = text.dropFirst(6).split(omittingEmptySubsequences: false) { "-/".contains($0) }
    let numbers = words.compactMap { Int64($0) }
    guard words.count == 3, numbers.count == 3, numbers[0] <= numbers[1], numbers[1] < numbers[2]
    else { return nil }
    return (numbers[0], numbers[2])
  }
}
