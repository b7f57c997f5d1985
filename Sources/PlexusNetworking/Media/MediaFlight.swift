internal import Foundation

/// A download that several callers may share.
struct MediaFlight: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    /// Downloads the file if it is not there.
    case load
    /// Downloads the file although it may be there.
    case reload
    /// Asks whether the existing file has changed.
    case revalidate
    /// Downloads the file without storing it.
    case memory
  }

  let entry: MediaEntry
  var kind: Kind
  /// The number of times that everything was removed before.
  let epoch: Int
  /// The last removal of this file that still affects a download; 0 if there is none.
  let removal: Int
  /// The request to send, for a caller that does not share the one of another caller.
  var ownRequest: OwnRequest?

  struct OwnRequest: Hashable, Sendable {
    let url: URL
    let headers: [String: String]
  }

  /// The same download, with the request of this caller alone.
  var withOwnRequest: MediaFlight {
    var flight = self
    flight.ownRequest = OwnRequest(url: entry.url, headers: entry.item.headers)
    return flight
  }
}

/// A rejection of a request by its server, which says nothing about the requests of other callers.
struct RejectedRequest: Error {
  let error: HTTPStatusError
  let item: MediaItem
}

/// The result of a download.
enum MediaDownload: Sendable {
  /// The file, with a pin: the byte limit cannot remove it before its callers have it.
  case file(MediaStore.PinnedFile)
  /// The bytes, which are not stored.
  case memory(UnstoredFile)
  /// There is the file of a download that began later.
  case superseded
}

/// A file in memory, because no disk can be written.
struct UnstoredFile: Sendable {
  let data: Data
  let type: String?
}
