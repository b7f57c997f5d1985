import Plexus
import PlexusTesting
import TestSupport

/// A list of three pages that a test fetches page by page, suspends or lets fail.
///
/// The page at cursor n has the items "an" and "bn". The first page is at 0, and is fetched without a cursor.
final class Catalog: Sendable {
  private struct State {
    var failures: [any Error] = []
    var edition = ""
  }

  /// The fetched pages.
  let asked = Log<Int?>()
  /// Closed only by a test that suspends fetches.
  let gate = Gate()
  private let state = Guarded(State())

  init(isHeldUp: Bool = false) {
    if !isHeldUp { gate.open() }
  }

  /// Lets the next fetches fail.
  func fail(_ errors: any Error...) {
    state.withLock { $0.failures += errors }
  }

  /// Changes all items by appending a text to them.
  func publish(_ edition: String) {
    state.withLock { $0.edition = edition }
  }

  func page(at cursor: Int?) async throws -> Page<String, Int> {
    let (failure, edition) = state.withLock { state in
      (state.failures.isEmpty ? nil : state.failures.removeFirst(), state.edition)
    }
    asked.append(cursor)
    try await gate.wait()
    if let failure { throw failure }
    let number = cursor ?? 0
    return Page(
      items: ["a\(number)\(edition)", "b\(number)\(edition)"],
      next: number < 2 ? number + 1 : nil
    )
  }

  func publisher() -> PagedPublisher<String, Int> {
    PagedPublisher { try await self.page(at: $0) }
  }
}

/// A short description of a state; a full stop marks a complete list.
func words(_ state: LoadState<Pages<String>>) -> String {
  func words(_ pages: Pages<String>?) -> String {
    guard let pages else { return "-" }
    return pages.items.joined(separator: " ") + (pages.isComplete ? "." : "")
  }
  return switch state {
  case .unknown: "unknown"
  case .loading(let previous): "loading(\(words(previous)))"
  case .loaded(let pages): "loaded(\(words(pages)))"
  case .failed(let error, let previous): "failed(\(error), \(words(previous)))"
  }
}

/// Waits until every task that was started on the main actor before has reached its suspension point.
@MainActor func everybodyHasBegun() async {
  await Task { @MainActor in }.value
}
