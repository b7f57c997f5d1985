/// The entries of a batch that a ``Cacher`` could not store or remove, with the reasons.
///
/// All other keys were processed, durably.
public struct CacherError: Error {
  /// The error of each failed key.
  public let failures: [String: any Error]

  /// Creates an error.
  ///
  /// - Parameter failures: The error of each failed key.
  public init(failures: [String: any Error]) {
    self.failures = failures
  }

  /// The failed keys.
  public var keys: Set<String> { Set(failures.keys) }
}

extension CacherError: CustomStringConvertible {
  /// A description that names some of the failed keys with their errors, in the order of the keys.
  public var description: String {
    let named = failures.sorted { $0.key < $1.key }.prefix(5).map { "\($0.key): \($0.value)" }
    let rest = failures.count - named.count
    let list = named.joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
    let entries = failures.count == 1 ? "entry" : "entries"
    return "\(failures.count) \(entries) of the cacher failed: \(list)"
  }
}
