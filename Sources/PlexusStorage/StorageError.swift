/// The reasons for which the cachers of this module fail.
///
/// What a value's own `encode(to:)` throws is passed on as it is.
@nonexhaustive
public enum StorageError: Error, Hashable, Sendable {
  /// A call to the system failed.
  ///
  /// The code is the system's `errno`, such as `ENOSPC` for a full disk.
  case system(operation: String, path: String, code: Int32)
  /// An entry is larger than everything that may be kept; nothing else was removed to make room.
  case entryTooLarge(byteCount: Int, limit: Int)
  /// Another process has kept a file locked for longer than ten seconds.
  case locked(path: String)
}

extension StorageError: CustomStringConvertible {
  /// A sentence that says what happened and, where that is possible, what to do about it.
  public var description: String {
    switch self {
    case .system(let operation, let path, let code):
      "\(operation) failed for \(path): \(systemMessage(for: code)) (\(code))"
    case .entryTooLarge(let byteCount, let limit):
      "An entry of \(byteCount) bytes exceeds the limit of \(limit) bytes. Raise the byte limit."
    case .locked(let path):
      "Another process has kept \(path) locked for longer than ten seconds."
    }
  }
}

extension StorageError {
  /// Whether the disk is full, or the user's share of it.
  var isLackOfSpace: Bool {
    if case .system(_, _, let code) = self { lacksSpace(code) } else { false }
  }
}
