internal import Foundation
internal import Plexus
internal import PlexusSupport

/// A decoded value with the size of its file.
struct DecodedImage<Image: Sendable>: Sendable {
  let image: Image
  let byteCount: Int
  var variant: ImageVariant?

  /// The bytes in memory, as far as they can be guessed: ten times those of the file, or those of the variant if
  /// they are fewer.
  var estimatedCost: Int {
    let ofFile = 10 * min(byteCount, .max / 10)
    return variant?.byteCount.map { min($0, ofFile) } ?? ofFile
  }
}

/// The part of an ``ImageLoader`` that makes images of files.
final class ImageDecoder<Image: Sendable>: Sendable {
  typealias Decode = @concurrent @Sendable (Data, MediaResponse) async throws -> Image

  private struct Failure: Sendable {
    let error: any Error
    /// The version of the file; `nil` if it was in memory.
    let version: FileVersion?
  }

  private struct Missing: Error {}

  /// Limits the decodes at once.
  let gate: HostGate<String>
  private let media: MediaLoader
  private let decode: Decode
  /// Whether the decoder looks at the type.
  private let usesType: Bool
  /// The files that could not be decoded; they are not downloaded again for a while.
  private let failures: MultiplexerMap<MediaItem, Failure>
  /// A failure that was found before it had to be forgotten is not remembered.
  private let revisions = Locked(MediaRevisions())

  /// Creates a decoder.
  ///
  /// - Parameters:
  ///   - media: The loader of the files.
  ///   - concurrency: The number of values to decode at once.
  ///   - failureTimeToLive: How long a file that cannot be decoded is not downloaded again.
  ///   - failureLimit: The number of such files that are remembered.
  ///   - usesType: Whether the closure looks at the type.
  ///   - decode: The user's decoder.
  init(
    media: MediaLoader,
    concurrency: Int,
    failureTimeToLive: Duration,
    failureLimit: Int = 1_000,
    usesType: Bool,
    decode: @escaping Decode
  ) {
    precondition(concurrency > 0, "An image loader needs a concurrency of at least one")
    self.media = media
    self.usesType = usesType
    self.decode = decode
    gate = HostGate(limit: concurrency)
    var policy = CachePolicy()
    policy.timeToLive = failureTimeToLive
    failures = MultiplexerMap(
      id: "ImageLoader failures",
      policy: policy,
      capacity: .count(failureLimit),
      clock: media.core.clock,
      onKeyFetch: { _ in throw Missing() }
    )
  }

  /// Lets the next request of an item download its file again, also if it could not be decoded.
  func forgetFailure(of item: MediaItem) {
    revisions.withLock { $0.remove(item.key) }
    failures.clearMemory(item.ofFile)
  }

  /// Lets all files be downloaded again.
  func forgetFailures() {
    revisions.withLock { $0.removeAll() }
    failures.clearMemory()
  }

  /// Downloads a file if it is not there, and decodes it.
  ///
  /// - Throws: ``MediaError/invalidVariant(_:)``, before anything is downloaded; the errors of download and decoder.
  func image(for requested: MediaItem) async throws -> DecodedImage<Image> {
    if let variant = requested.variant, !variant.isValid {
      throw MediaError.invalidVariant(variant)
    }
    let entry = MediaEntry(requested)
    // Whether a file can be decoded is not a matter of the variant.
    let item = requested.ofFile
    if failures.cachedValue(item) != nil, let failure = try? await failures.request(item) {
      // The file that could not be decoded was removed: another one has taken its place.
      guard media.core.hasOther(than: failure.version, entry) else { throw failure.error }
      failures.clearMemory(item)
    }
    let ticket = revisions.withLock { $0.begin(item.key) }
    defer { revisions.withLock { $0.end(ticket) } }
    // A request from before a removal does not bring back the file.
    let request = media.core.begin(entry)
    defer { media.core.end(request) }
    // A file that was there may be damaged: then one that is downloaded now is tried, too.
    var triesAgain = entry.url.isHTTP && media.core.cachedFile(for: entry) != nil
    var remaining = 3
    while true {
      do {
        return try await decoded(entry)
      } catch is Vanished {
        remaining -= 1
        guard remaining > 0, !media.core.isRemoved(since: request) else {
          throw MediaError.cleared
        }
      } catch let failure as DecodingFailure {
        remaining -= 1
        let wasThere = failure.file.map { media.core.discard($0, entry) } ?? true
        let file = media.core.properties(of: entry)
        let isReplaced = media.core.hasOther(than: failure.file?.properties.version, entry)
        if media.core.isRemoved(since: request) { triesAgain = false }
        guard triesAgain || isReplaced, remaining > 0 else {
          // A file that others have removed says nothing about the next one; one that cannot be removed does.
          if wasThere || file != nil, !isReplaced { remember(failure, item, ticket) }
          throw failure.error
        }
        if !isReplaced { triesAgain = false }
      }
    }
  }

  /// Remembers a failure, unless it had to be forgotten since the image was requested.
  private func remember(
    _ failure: DecodingFailure,
    _ item: MediaItem,
    _ ticket: MediaRevisions.Ticket
  ) {
    let version = failure.file?.properties.version
    // A file of a file URL can be replaced by others, so that it is read each time.
    guard item.url.isHTTP else { return }
    guard revisions.withLock({ $0.verdict(ticket) }) == .current else { return }
    failures.store(Failure(error: failure.error, version: version), for: item)
    // Errors are released by the map, which must not happen with the lock.
    if revisions.withLock({ $0.verdict(ticket) }) != .current { failures.clearMemory(item) }
  }

  /// - Throws: ``DecodingFailure`` if the file cannot be decoded.
  private func decoded(_ entry: MediaEntry) async throws -> DecodedImage<Image> {
    do {
      let pinned = try await media.pinned(entry, isForOthers: true)
      defer { withExtendedLifetime(pinned) {} }
      return try await DecodeTurn.run(at: gate, for: entry.item.decodingKey) {
        let data = try Self.content(of: pinned, entry)
        let record = usesType ? media.core.record(of: pinned, entry) : nil
        return try await decoded(
          data,
          MediaResponse(
            url: entry.url,
            file: pinned.file,
            type: record?.type,
            variant: entry.item.variant
          ),
          of: pinned
        )
      }
    } catch is StorageFailure {
      let file = try await media.unstored(entry)
      return try await DecodeTurn.run(at: gate, for: entry.item.decodingKey) {
        let variant = entry.item.variant
        return try await decoded(
          file.data,
          MediaResponse(url: entry.url, type: file.type, variant: variant)
        )
      }
    }
  }

  /// - Throws: ``Vanished`` if others have removed the file.
  private static func content(of pinned: MediaStore.PinnedFile, _ entry: MediaEntry) throws -> Data
  {
    do {
      // Files of loaders are never changed; others may be, and what is mapped must not get shorter.
      return try Data(
        contentsOf: pinned.file,
        options: pinned.store == nil ? [] : .mappedIfSafe
      )
    } catch {
      guard let store = pinned.store, !store.has(entry.name) else { throw error }
      throw Vanished()
    }
  }

  private func decoded(
    _ data: Data,
    _ response: MediaResponse,
    of file: MediaStore.PinnedFile? = nil
  ) async throws -> DecodedImage<Image> {
    do {
      return DecodedImage(
        image: try await decode(data, response),
        byteCount: data.count,
        variant: response.variant
      )
    } catch {
      // A decoder that was cancelled says nothing about the file.
      if Task.isCancelled || error is CancellationError { throw error }
      throw DecodingFailure(error: error, file: file)
    }
  }
}

/// A file has been removed before it was read.
private struct Vanished: Error {}

/// A file that could not be decoded.
private struct DecodingFailure: Error {
  let error: any Error
  /// The file; `nil` if it was in memory.
  let file: MediaStore.PinnedFile?
}
