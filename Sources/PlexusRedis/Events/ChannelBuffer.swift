internal import Plexus
internal import PlexusSupport

/// The messages of a channel that a reader has not taken yet, up to a number of bytes.
final class ChannelBuffer: Sendable {
  /// An element of the buffer.
  enum Element: Sendable {
    case message(LinkMessage, at: LinkPosition)
    /// A message that another program has published.
    case foreign([UInt8])
  }

  /// The memory that a message needs besides its bytes, roughly.
  private static let overhead = 256

  private struct State: Sendable {
    var elements: [(element: Element, size: Int)] = []
    var taken = 0
    /// The sizes of all elements that are not taken.
    var bytes = 0
    var isBroken = false
  }

  private let limit: Int
  private let bell: Bell
  private let state = Locked(State())

  /// - Parameters:
  ///   - limit: The number of bytes, 256 more for each message, beyond which the oldest messages are dropped.
  ///   - bell: Rings for each message, and when the connection is lost.
  init(limit: Int, _ bell: Bell) {
    self.limit = limit
    self.bell = bell
  }

  /// Adds a message; the reader recognizes dropped ones by the positions.
  func append(_ bytes: [UInt8]) {
    let element =
      MessageFormat.published(bytes).map { Element.message($0.message, at: $0.position) }
      ?? .foreign(bytes)
    let size = bytes.count + Self.overhead
    let dropped = state.withLock { state -> [(element: Element, size: Int)] in
      guard !state.isBroken else { return [] }
      state.elements.append((element, size))
      state.bytes += size
      guard state.bytes > limit else { return [] }
      var count = state.taken
      while state.bytes > limit / 2, count < state.elements.count - 1 {
        state.bytes -= state.elements[count].size
        count += 1
      }
      let dropped = Array(state.elements[..<count])
      state.elements.removeFirst(count)
      state.taken = 0
      return dropped
    }
    withExtendedLifetime(dropped) {}
    bell.ring()
  }

  /// The number of stored messages, taken ones that are still in memory included.
  var storedCount: Int { state.withLock { $0.elements.count } }

  /// The oldest message, which stays.
  var first: Element? {
    state.withLock { state in
      state.taken < state.elements.count ? state.elements[state.taken].element : nil
    }
  }

  /// Takes the oldest messages.
  ///
  /// - Parameter count: Their number at most.
  /// - Returns: The messages; none if no message has arrived.
  /// - Throws: An error if there is none, and the connection was lost.
  func take(atMost count: Int) throws -> [Element] {
    var released: ArraySlice<(element: Element, size: Int)> = []
    let (elements, isBroken) = state.withLock { state -> ([Element], Bool) in
      let range = state.elements[state.taken...].prefix(count).indices
      guard !range.isEmpty else { return ([], state.isBroken) }
      let elements = state.elements[range].map(\.element)
      for index in range { state.bytes -= state.elements[index].size }
      state.taken = range.upperBound
      if state.taken == state.elements.count {
        state.elements.removeAll(keepingCapacity: state.taken < 1_024)
        state.taken = 0
      } else if state.taken >= 1_024, state.taken > state.elements.count / 2 {
        // A reader that is always a little behind never empties the buffer.
        released = state.elements[..<state.taken]
        state.elements.removeFirst(state.taken)
        state.taken = 0
      }
      return (elements, state.isBroken)
    }
    withExtendedLifetime(released) {}
    if elements.isEmpty, isBroken {
      throw RedisConnectionError.lost(reason: "messages of a channel were missed")
    }
    return elements
  }

  /// Ends the buffer: the connection was lost.
  func `break`() {
    state.withLock { $0.isBroken = true }
    bell.ring()
  }
}
