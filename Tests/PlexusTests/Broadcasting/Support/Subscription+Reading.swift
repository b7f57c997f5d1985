import Plexus
import TestSupport

extension Subscription {
  /// Reads until the end.
  func all(isolation: isolated (any Actor)? = #isolation) async -> [Element] {
    var elements: [Element] = []
    for await element in self { elements.append(element) }
    return elements
  }

  /// Reads a number of elements, or until the end.
  func first(
    _ count: Int,
    isolation: isolated (any Actor)? = #isolation
  ) async -> [Element] {
    var elements: [Element] = []
    var iterator = makeAsyncIterator()
    while elements.count < count, let element = await iterator.next(isolation: isolation) {
      elements.append(element)
    }
    return elements
  }
}

extension AsyncStream where Element: Sendable {
  /// Reads a number of elements, or until the end.
  func first(
    _ count: Int,
    isolation: isolated (any Actor)? = #isolation
  ) async -> [Element] {
    var elements: [Element] = []
    guard count > 0 else { return elements }
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }

  /// Reads until the end.
  func all(isolation: isolated (any Actor)? = #isolation) async -> [Element] {
    await first(.max, isolation: isolation)
  }
}

/// A reader that advances step by step.
actor SteppedReader {
  nonisolated let executor = SteppedExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  func read<Element>(_ subscription: Subscription<Element>, into log: Log<Element>) async {
    for await element in subscription { log.append(element) }
  }

  /// Reads elements without retaining them.
  func discard<Element>(_ subscription: Subscription<Element>) async {
    for await _ in subscription {}
  }

  func read<Element>(
    _ stream: AsyncStream<Element>,
    into log: Log<Element>
  ) async where Element: Sendable {
    for await element in stream { log.append(element) }
  }
}
