import PlexusTesting
import Synchronization

/// The actions of the tasks of a scenario, in order.
final class Journal: Sendable {
  private let state = Mutex<[String]>([])

  var entries: [String] { state.withLock { $0 } }

  var text: String { entries.joined() }

  @discardableResult
  func append(_ entry: String) -> Int {
    state.withLock { entries in
      entries.append(entry)
      return entries.count
    }
  }

  func append(_ first: String, thenAfterAHop second: String) async {
    append(first)
    await hop()
    append(second)
  }

  func clear() { state.withLock { $0 = [] } }
}
