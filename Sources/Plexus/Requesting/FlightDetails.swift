/// What is known of a key only some of the time.
@usableFromInline
struct FlightDetails: Sendable {
  /// The flight under way.
  @usableFromInline
  struct Running: Sendable {
    @usableFromInline let id: FlightID
    /// The first refresh before it began that nothing has served yet.
    var serves = RefreshTicket.none
    /// The first refresh since it began.
    var unserved = RefreshTicket.none
    /// The flight that begins when it has ended, because of a refresh since it began.
    var queued: FlightID?
    /// Whether the value that it began with may stand in for its result: until memory is cleared.
    var mayUsePrevious = true
    /// Whether it began without anybody waiting for it.
    let isInBackground: Bool
  }

  /// The outcome of the last flight, if it failed.
  @usableFromInline
  struct Failure: Sendable {
    let error: any Error
    /// What it has to say for the value to stand in.
    let grounds: StandInGrounds
    /// Until when requests get it; in the past if it is not remembered.
    var until: Nanoseconds
  }

  @usableFromInline var running: Running?
  var failure: Failure?
  /// What came with the value for the next fetch.
  var validator: String?
  /// What came with the value about keeping it.
  var terms = ValueTerms()
  /// Until when the value is fresh by itself, if it is asked about before that because it only stands in.
  var ownDeadline: Nanoseconds?

  var isEmpty: Bool {
    running == nil && failure == nil && validator == nil && ownDeadline == nil
      && terms == ValueTerms()
  }

  /// Details that take one word while there are none.
  @usableFromInline
  enum Box: Sendable {
    case empty
    indirect case full(FlightDetails)

    var details: FlightDetails {
      switch self {
      case .empty: FlightDetails()
      case .full(let details): details
      }
    }
  }
}
