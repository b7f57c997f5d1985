/// Which flights wait for which others, over all multiplexers and publishers of the process.
///
/// It is used only by requests and loads that are made inside a fetch or a load and have to wait.
@usableFromInline
enum WaitGraph: Sendable {
  private struct Vertex: Hashable, Sendable {
    let flight: any FlightNode

    static func == (left: Self, right: Self) -> Bool {
      left.flight === right.flight
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(flight))
    }
  }

  private static let state = Locked(WaitGraphState<Vertex>())

  /// Records that a fetch or a load waits for a flight, unless it would wait for itself then.
  ///
  /// The caller keeps both until it calls ``stopWaiting(_:for:)``.
  ///
  /// - Parameters:
  ///   - flight: The flight whose fetch or operation wants to wait.
  ///   - target: What it wants to wait for.
  /// - Returns: If it would wait for itself, the names of all who would wait for each other, as far as
  ///   they have one; the last is the first, too.
  static func wait(_ flight: any FlightNode, for target: any FlightNode) -> [String]? {
    // Whoever loads a predecessor may come to be the last to hold it: it is released without the lock.
    var predecessors: [any FlightNode] = []
    let way = state.withLock { state in
      state.wait(
        Vertex(flight: flight),
        for: Vertex(flight: target),
        isSettled: { $0.flight.isSettled },
        predecessor: { vertex in
          guard let predecessor = vertex.flight.predecessor else { return nil }
          predecessors.append(predecessor)
          return Vertex(flight: predecessor)
        }
      )
    }
    withExtendedLifetime(predecessors) {}
    guard let way else { return nil }
    let names = way.compactMap(\.flight.label)
    return Array(names.suffix(1)) + names
  }

  /// Takes back what ``wait(_:for:)`` has recorded.
  @usableFromInline
  static func stopWaiting(_ flight: any FlightNode, for target: any FlightNode) {
    state.withLock { $0.stopWaiting(Vertex(flight: flight), for: Vertex(flight: target)) }
  }
}
