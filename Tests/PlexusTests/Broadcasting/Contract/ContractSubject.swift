import Plexus
import TestSupport
import Testing

/// A kind of broadcaster that is tested against the contract.
///
/// The sent elements contain parcels with numbers; an element without a parcel is a replay of the initial state.
protocol ContractSubject: Sendable, CustomTestStringConvertible {
  associatedtype Source: Broadcaster

  /// Whether the newest element is replayed to a new subscriber.
  var replays: Bool { get }
  /// Whether the newest element is retained as long as the broadcaster.
  var keepsNewest: Bool { get }
  /// Whether the parcels themselves are sent, instead of notifications about them.
  var sendsParcels: Bool { get }
  /// Whether elements have been delivered when sending returns, instead of soon afterwards.
  var deliversAtOnce: Bool { get }
  /// Whether elements can be lost between the end of one subscriber and the start of the next.
  var losesInPauses: Bool { get }
  /// Creates a broadcaster to which nothing has been sent.
  func makeSource() -> Source
  /// Sends a parcel to all subscribers.
  func send(_ parcel: Parcel, to source: Source)
  /// Calls the body, while nothing is sent, with a function that returns the parcels in the elements of a new
  /// subscriber.
  func registering<Result>(_ body: (@escaping Opener<Source.Element>) -> Result) -> Result
  /// Returns the parcel in an element.
  func parcel(in element: Source.Element) -> Parcel?
  /// Ends all streams; the last reference to the broadcaster is released afterwards in any case.
  func end(_ source: Source)
  /// Returns a subject of the same kind that no other test uses.
  func fresh() -> Self
  /// Creates a type-erased stage for a test.
  func stage() -> any Stage
  /// Creates a type-erased stage whose subscribers register with a broadcaster that forwards this one.
  func forwardedStage() -> any Stage
}

/// Returns the parcel in an element, called for all elements of one subscriber in order.
typealias Opener<Element> = @Sendable (Element) -> Parcel?

extension ContractSubject {
  var replays: Bool { false }

  var keepsNewest: Bool { replays }

  var sendsParcels: Bool { true }

  var deliversAtOnce: Bool { true }

  var losesInPauses: Bool { false }

  func registering<Result>(_ body: (@escaping Opener<Source.Element>) -> Result) -> Result {
    body { parcel(in: $0) }
  }

  func end(_ source: Source) {}

  func fresh() -> Self { self }

  func stage() -> any Stage { ContractStage(fresh()) }

  func forwardedStage() -> any Stage { ContractStage(ForwardedSubject(base: fresh())) }
}

/// Messages, ended by `finish()` or by the release of the messenger.
struct MessengerSubject: ContractSubject {
  let finishes: Bool

  var testDescription: String {
    finishes ? "a messenger that finishes" : "a messenger that is released"
  }

  func makeSource() -> Messenger<Parcel> { Messenger() }

  func send(_ parcel: Parcel, to source: Messenger<Parcel>) { source.send(parcel) }

  func parcel(in element: Parcel) -> Parcel? { element }

  func end(_ source: Messenger<Parcel>) {
    if finishes { source.finish() }
  }
}

/// States of one value.
struct DataPublisherSubject: ContractSubject {
  var testDescription: String { "a data publisher" }

  var replays: Bool { true }

  func makeSource() -> DataPublisher<Parcel> { DataPublisher() }

  func send(_ parcel: Parcel, to source: DataPublisher<Parcel>) { source.update(parcel) }

  func parcel(in element: LoadState<Parcel>) -> Parcel? { element.value }
}

/// States of one value that is fetched; what is sent is stored.
struct MultiplexerSubject: ContractSubject {
  var testDescription: String { "a multiplexer" }

  var replays: Bool { true }

  func makeSource() -> Multiplexer<Parcel> {
    Multiplexer { throw CancellationError() }
  }

  func send(_ parcel: Parcel, to source: Multiplexer<Parcel>) { source.store(parcel) }

  func parcel(in element: LoadState<Parcel>) -> Parcel? { element.value }
}

/// A broadcaster of another library, with only the requirements of the protocol.
struct ForeignSubject: ContractSubject {
  struct Source: Broadcaster {
    let messenger = Messenger<Parcel>()

    var subscriberCount: Int { messenger.subscriberCount }

    func subscription(bufferingPolicy: BufferingPolicy<Parcel>) -> Subscription<Parcel> {
      messenger.subscription(bufferingPolicy: bufferingPolicy)
    }
  }

  var testDescription: String { "a broadcaster of somebody else" }

  func makeSource() -> Source { Source() }

  func send(_ parcel: Parcel, to source: Source) { source.messenger.send(parcel) }

  func parcel(in element: Parcel) -> Parcel? { element }
}

/// A broadcaster of a user that forwards the subscriptions of a source.
struct ForwardedSubject<Base: ContractSubject>: ContractSubject {
  let base: Base

  var testDescription: String { "\(base.testDescription), forwarded" }

  var replays: Bool { base.replays }

  var keepsNewest: Bool { base.keepsNewest }

  var sendsParcels: Bool { base.sendsParcels }

  var deliversAtOnce: Bool { base.deliversAtOnce }

  var losesInPauses: Bool { base.losesInPauses }

  func makeSource() -> Forwarder<Base.Source> { Forwarder(source: base.makeSource()) }

  func send(_ parcel: Parcel, to source: Forwarder<Base.Source>) {
    base.send(parcel, to: source.source)
  }

  func registering<Result>(_ body: (@escaping Opener<Base.Source.Element>) -> Result) -> Result {
    base.registering(body)
  }

  func parcel(in element: Base.Source.Element) -> Parcel? { base.parcel(in: element) }

  func end(_ source: Forwarder<Base.Source>) { base.end(source.source) }

  func stage() -> any Stage { base.forwardedStage() }
}

extension ContractSubject {
  /// The same kind, forwarded by a broadcaster of a user.
  var forwarded: any ContractSubject { ForwardedSubject(base: self) }
}

/// All kinds of broadcasters that follow the contract, some of them also forwarded, and all of them in a nightly check.
let contractSubjects: [any ContractSubject] =
  sourceSubjects + Effort.some(of: sourceSubjects, offset: 0).map { $0.forwarded }

/// All kinds of broadcasters that follow the contract.
private let sourceSubjects: [any ContractSubject] =
  [
    MessengerSubject(finishes: true),
    MessengerSubject(finishes: false),
    DataPublisherSubject(),
    PagedPublisherSubject(),
    SharedSequenceSubject(),
    MultiplexerSubject(),
    DebouncerSubject(),
    DebouncerVarSubject(),
    ThrottlerSubject(),
    StoreSubject(),
    PageStoreSubject(sendsToApp: false),
    PageStoreSubject(sendsToApp: true),
    EventBusSubject(scope: nil),
    EventBusSubject(scope: "left"),
    MapKeySubject(),
    LiveSubject(),
    ChangesSubject(part: .store),
    ChangesSubject(part: .page),
    ChangesSubject(part: .app),
    ForeignSubject(),
    CurrentValueSubject(removesDuplicates: false, ending: .finish),
    CurrentValueSubject(removesDuplicates: false, ending: .release),
    CurrentValueSubject(removesDuplicates: true, ending: .finish),
  ] + DerivedSubject.Kind.allCases.map { DerivedSubject(kind: $0) }

/// The ways in which a loop reads.
enum Reading: CaseIterable, Sendable {
  case subscription
  case stream
}

/// A buffering policy for elements of any type.
enum Policy: Hashable, Sendable {
  case unbounded
  case newest(Int)
  case oldest(Int)

  /// The policies under which these tests lose nothing.
  ///
  /// Even on a busy machine, no reader falls this far behind.
  static let roomy: [Policy] = [.unbounded, .newest(10_000_000), .oldest(10_000_000)]

  func callAsFunction<Element>() -> BufferingPolicy<Element> {
    switch self {
    case .unbounded: .unbounded
    case .newest(let limit): .bufferingNewest(limit)
    case .oldest(let limit): .bufferingOldest(limit)
    }
  }
}

/// The way in which a loop reads, and its policy.
struct ReadingWay: Hashable, Sendable, CustomTestStringConvertible {
  var reading = Reading.subscription
  var policy = Policy.unbounded

  static let all = Reading.allCases.flatMap { reading in
    Policy.roomy.map { ReadingWay(reading: reading, policy: $0) }
  }

  var testDescription: String { "\(reading), \(policy)" }
}
