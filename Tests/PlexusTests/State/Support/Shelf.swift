import Plexus
import TestSupport

/// A state with parts of several kinds.
struct Shelf: Sendable, Equatable {
  var count = 0
  var name: String?
  var works: [String] = []
}

/// The actions on a shelf.
enum ShelfAction: Sendable, Equatable {
  case add(Int)
  case rename(String?)
  case put(String)
  case nothing
}

@Sendable func arrange(_ shelf: inout Shelf, _ action: ShelfAction) {
  switch action {
  case .add(let number): shelf.count += number
  case .rename(let name): shelf.name = name
  case .put(let work): shelf.works.append(work)
  case .nothing: break
  }
}

/// An object that closures can refer to before it exists.
final class Later<Value: AnyObject & Sendable>: Sendable {
  private struct Weak: Sendable {
    weak var value: Value?
  }

  private let box = Guarded(Weak())

  var value: Value? {
    get { box.withLock { $0.value } }
    set { box.withLock { $0.value = newValue } }
  }
}
