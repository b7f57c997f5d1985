/// The entries of a batch that a ``Cacher`` could not store or remove, and why.
///
/// The keys that are not named have been dealt with, durably.
public struct CacherError: Error {
  /// The reason for each key that failed.
  public let failures: [String: any Error]

  /// Creates an error.
  ///
  /// - Parameter failures: The reason for each key that failed.
  public init(failures: [String: any Error]) {
    self.failures = failures
  }

  /// The keys that failed.
  public var keys: Set<String> { Set(failures.keys) }
}

extension CacherError: CustomStringConvertible {
  /// A sentence that names some of the keys and their reasons, in order of the keys.
  public var description: String {
    let named = failures.sorted { $0.key < $1.key }.prefix(5).map { "\($0.key): \($0.value)" }
    let rest = failures.count - named.count
    let list = named.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
    let entries = failures.count == 1 ? "entry" : "entries"
    return "\(failures.count) \(entries) of the cacher failed: \(list)"
  }
}
