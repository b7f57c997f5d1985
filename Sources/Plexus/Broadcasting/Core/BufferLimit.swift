/// The elements that are kept for a subscriber that is behind.
@usableFromInline
enum BufferLimit: Sendable {
  /// All elements are kept.
  case none
  /// The oldest elements are kept, as many as given.
  case oldest(Int)
  /// The newest elements are kept, as many as given and at least one.
  case newest(Int)

  /// The limit of a buffering policy.
  @inlinable
  init<Element>(_ bufferingPolicy: BufferingPolicy<Element>) {
    switch bufferingPolicy {
    case .unbounded: self = .none
    case .bufferingNewest(let limit) where limit > 0: self = .newest(limit)
    case .bufferingNewest(let limit), .bufferingOldest(let limit): self = .oldest(max(limit, 0))
    @unknown default: self = .none
    }
  }

  /// The number of elements that are kept.
  var count: Int {
    switch self {
    case .none: .max
    case .oldest(let count), .newest(let count): count
    }
  }

  /// The element that is dropped when another one arrives.
  @usableFromInline
  enum Drop: Sendable {
    case nothing
    case oldest
    case arriving
  }

  /// Returns the element that is dropped when another one arrives.
  ///
  /// - Parameters:
  ///   - count: The number of elements that are kept already.
  ///   - isAwaited: Whether the subscriber waits for an element, which it then gets even if the limit is 0.
  /// - Returns: The element.
  @inlinable
  func drop(beyond count: Int, isAwaited: Bool) -> Drop {
    switch self {
    case .none: .nothing
    case .oldest(let limit): count < max(limit, isAwaited ? 1 : 0) ? .nothing : .arriving
    case .newest(let limit): count < limit ? .nothing : .oldest
    }
  }
}
