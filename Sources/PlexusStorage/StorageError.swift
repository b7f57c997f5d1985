/// An error that a cacher of this module throws.
///
/// Errors from a value's own `encode(to:)` are passed on unchanged.
@nonexhaustive
public enum StorageError: Error, Hashable, Sendable {
  /// A system call failed.
  ///
  /// The code is the value of `errno`, such as `ENOSPC` for a full disk.
  case system(operation: String, path: String, code: Int32)
  /// An entry exceeds the size limit by itself; no other entry was evicted for it.
  case entryTooLarge(byteCount: Int, limit: Int)
  /// Another instance or process kept a file locked for more than about ten seconds.
  case locked(path: String)
}

extension StorageError: CustomStringConvertible {
  /// A sentence that describes the error and, where possible, a remedy.
  public var description: String {
    switch self {
    case .system(let operation, let path, let code):
      "\(operation) failed for \(path): \(systemMessage(for: code)) (\(code))"
    case .entryTooLarge(let byteCount, let limit):
      "An entry of \(byteCount) bytes exceeds the limit of \(limit) bytes. Raise the byte limit."
    case .locked(let path):
      "Another instance or process has kept \(path) locked for longer than ten seconds."
    }
  }
}

extension StorageError {
  /// Whether a file or its folder does not exist.
  var isMissing: Bool {
    if case .system(_, _, let code) = self { isMissingCode(code) } else { false }
  }

  /// Whether the disk is full or the user's quota is exhausted.
  var isLackOfSpace: Bool {
    if case .system(_, _, let code) = self { lacksSpace(code) } else { false }
  }
}
