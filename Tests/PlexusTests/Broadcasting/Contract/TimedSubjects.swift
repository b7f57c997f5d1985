import Plexus
import TestSupport

/// Touches that fire immediately.
struct DebouncerSubject: ContractSubject {
  private let pendingWrites = Ledger()

  var testDescription: String { "a debouncer" }

  var sendsParcels: Bool { false }

  func makeSource() -> Debouncer { Debouncer(delay: .zero) }

  func send(_ parcel: Parcel, to source: Debouncer) {
    pendingWrites.write(parcel.number) { source.touch() }
  }

  func registering<Result>(_ body: (@escaping Opener<Void>) -> Result) -> Result {
    pendingWrites.opening(body)
  }

  func parcel(in element: Void) -> Parcel? { nil }

  func fresh() -> Self { DebouncerSubject() }
}

/// Touches that are never too early.
struct ThrottlerSubject: ContractSubject {
  private let pendingWrites = Ledger()

  var testDescription: String { "a throttler" }

  var sendsParcels: Bool { false }

  func makeSource() -> Throttler { Throttler(interval: .zero) }

  func send(_ parcel: Parcel, to source: Throttler) {
    pendingWrites.write(parcel.number) { source.touch() }
  }

  func registering<Result>(_ body: (@escaping Opener<Void>) -> Result) -> Result {
    pendingWrites.opening(body)
  }

  func parcel(in element: Void) -> Parcel? { nil }

  func fresh() -> Self { ThrottlerSubject() }
}

/// Changes of a variable that fire immediately.
struct DebouncerVarSubject: ContractSubject {
  /// A parcel, or none initially.
  struct Content: Equatable, Sendable {
    var parcel: Parcel?

    static func == (left: Content, right: Content) -> Bool { left.parcel === right.parcel }
  }

  var testDescription: String { "a debounced variable" }

  var keepsNewest: Bool { true }

  func makeSource() -> DebouncerVar<Content> { DebouncerVar(Content(), delay: .zero) }

  func send(_ parcel: Parcel, to source: DebouncerVar<Content>) {
    source.value = Content(parcel: parcel)
  }

  func parcel(in element: Content) -> Parcel? { element.parcel }
}

/// The numbers of the sent parcels, for elements without content, in order.
///
/// A subscriber whose policy loses nothing receives one element for each number that was recorded since its
/// registration, and identifies elements by counting.
private final class Ledger: Sendable {
  private let numbers = Guarded<[Int]>([])

  /// Records a number and sends, one at a time.
  func write(_ number: Int, _ send: () -> Void) {
    numbers.withLock { numbers in
      numbers.append(number)
      send()
    }
  }

  /// Calls the body, while nothing is recorded, with a function that identifies the elements from now on.
  func opening<Result>(_ body: (@escaping Opener<Void>) -> Result) -> Result {
    numbers.withLock { numbers in
      let position = Guarded(numbers.count)
      return body { _ in
        let index = position.withLock { position in
          defer { position += 1 }
          return position
        }
        return Parcel(self.numbers.withLock { $0[index] })
      }
    }
  }
}
