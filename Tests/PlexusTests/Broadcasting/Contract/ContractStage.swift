import Plexus
import TestSupport

/// A broadcaster under test, whose elements are identified by numbers.
protocol Stage: Sendable {
  var subscriberCount: Int { get }

  func send(_ parcel: Parcel)
  /// Ends the streams and releases the broadcaster.
  func end()
  func subscribe(_ way: ReadingWay) -> any StageReader
  /// Registers a handler that lives as long as its token.
  func observe(
    _ site: HandlerSite,
    policy: Policy,
    on host: HandlerHost,
    _ body: @escaping @Sendable (Int) -> Void
  ) async -> ObservationToken
  /// Registers a handler that lives as long as its owner.
  func observe(as owner: Parcel, isAsync: Bool, _ body: @escaping @Sendable (Int) -> Void)
  /// Registers a handler that can suspend.
  func observeSlowly(_ body: @escaping @Sendable (Int) async -> Void) -> ObservationToken
}

extension Stage {
  func send(_ number: Int) {
    send(Parcel(number))
  }

  func send(_ numbers: Range<Int>) {
    for number in numbers { send(number) }
  }

  func subscribe() -> any StageReader {
    subscribe(ReadingWay())
  }

  func observe(
    _ site: HandlerSite,
    policy: Policy = .unbounded,
    _ body: @escaping @Sendable (Int) -> Void
  ) async -> ObservationToken {
    await observe(site, policy: policy, on: HandlerHost(), body)
  }
}

/// The elements that one reader receives.
protocol StageReader: Sendable {
  /// Calls a closure for each number until it returns `false`.
  func forEach(isolation: isolated (any Actor)?, _ body: (Int) async -> Bool) async
}

extension StageReader {
  /// Reads until the end, or until a number of elements have been read.
  func numbers(_ limit: Int = .max, isolation: isolated (any Actor)? = #isolation) async -> [Int] {
    var numbers: [Int] = []
    guard limit > 0 else { return numbers }
    await forEach(isolation: isolation) { number in
      numbers.append(number)
      return numbers.count < limit
    }
    return numbers
  }
}

/// One broadcaster of a kind.
final class ContractStage<Subject: ContractSubject>: Stage {
  typealias Element = Subject.Source.Element

  let subject: Subject
  private let current: Guarded<Subject.Source?>

  init(_ subject: Subject) {
    self.subject = subject
    current = Guarded(subject.makeSource())
  }

  /// The broadcaster, until the end.
  var source: Subject.Source {
    guard let source = current.withLock({ $0 }) else {
      preconditionFailure("The test has ended the broadcaster already")
    }
    return source
  }

  var subscriberCount: Int { source.subscriberCount }

  func send(_ parcel: Parcel) {
    subject.send(parcel, to: source)
  }

  func end() {
    guard let source = current.withLock({ $0.take() }) else { return }
    subject.end(source)
  }

  func subscribe(_ way: ReadingWay) -> any StageReader {
    let source = source
    return subject.registering { open -> any StageReader in
      switch way.reading {
      case .subscription:
        ContractReader(source.subscription(bufferingPolicy: way.policy()), open)
      case .stream:
        ContractReader(source.subscribe(bufferingPolicy: way.policy()), open)
      }
    }
  }
}

/// One reader of a broadcaster of a kind.
private struct ContractReader<Elements: AsyncSequence & Sendable>: StageReader
where Elements.Failure == Never {
  let elements: Elements
  let open: Opener<Elements.Element>

  init(_ elements: Elements, _ open: @escaping Opener<Elements.Element>) {
    self.elements = elements
    self.open = open
  }

  func forEach(isolation: isolated (any Actor)?, _ body: (Int) async -> Bool) async {
    for await element in elements {
      guard let number = open(element)?.number else { continue }
      guard await body(number) else { break }
    }
  }
}
