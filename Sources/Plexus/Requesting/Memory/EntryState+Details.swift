extension EntryState {
  /// The part of a key's state that is rarely present.
  @usableFromInline
  struct Details: Sendable {
    /// The running flight.
    @usableFromInline
    struct Running: Sendable {
      @usableFromInline let flight: Flight
      /// The first refresh before it began that no flight has served yet.
      var serves = RefreshTicket.none
      /// The first refresh since it began.
      var unserved = RefreshTicket.none
      /// The flight that begins when it has ended, because of a refresh since it began.
      var queued: Flight?
      /// Whether the value that it began with can be the answer if it fails: until memory is cleared.
      var allowsPrevious = true
      /// Whether it continues without callers, because it began without one or has outlasted a soft timeout.
      var isInBackground: Bool
      /// Whether its fetch has begun: not while it waits for others with which it shares the fetch.
      var hasDeparted: Bool

      init(flight: Flight, serves: RefreshTicket = .none, isInBackground: Bool = false) {
        self.flight = flight
        self.serves = serves
        self.isInBackground = isInBackground
        hasDeparted = !flight.isDelayed
      }

      fileprivate init(departed flight: Flight) {
        self.init(flight: flight)
        hasDeparted = true
      }
    }

    /// The outcome of the last flight, if it failed.
    @usableFromInline
    struct Failure: Sendable {
      @usableFromInline let error: any Error
      /// The grounds on which the value can be the answer.
      @usableFromInline let grounds: ValueTerms.FallbackGrounds
      /// The time until which requests get it; in the past if it is not remembered.
      @usableFromInline var until: Nanoseconds
      /// The time from which a value that is still fresh is renewed again.
      var renewsFrom: Nanoseconds
    }

    @usableFromInline var running: Running?
    var failure: Failure?
    /// The validator that came with the value.
    var validator: String?
    /// The directives that came with the value.
    var terms = ValueTerms()
    /// The time until which the value is fresh by its own lifetime, if it is a fallback that was made stale before.
    var ownDeadline: Nanoseconds?

    var isEmpty: Bool {
      running == nil && failure == nil && validator == nil && ownDeadline == nil && terms.isEmpty
    }

    /// Details that take one word, and no allocation for the usual ones.
    @usableFromInline
    enum Box: Sendable {
      case empty
      /// A flight that callers wait for and that waits for its batch to depart, and nothing else.
      case waiting(Flight)
      /// A running flight that callers wait for, and nothing else.
      case running(Flight)
      indirect case full(Details)

      var details: Details {
        switch self {
        case .empty: Details()
        case .waiting(let flight): Details(running: Running(flight: flight))
        case .running(let flight): Details(running: Running(departed: flight))
        case .full(let details): details
        }
      }
    }
  }
}
