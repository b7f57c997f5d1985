import Plexus

/// The details of a flight beside its timetable.
struct RowDetails: Hashable, Sendable {
  var airline = Cell<Airline>.pending
  var aircraft = Cell<Aircraft>.pending
  var origin = Cell<Airport>.pending
  var destination = Cell<Airport>.pending
  var weather = Cell<Weather>.pending
  var badge: Badge?

  /// The number of stale answers.
  var staleCount: Int {
    [airline.isStale, aircraft.isStale, origin.isStale, destination.isStale, weather.isStale]
      .count { $0 }
  }

  /// Whether another lookup could improve an answer.
  var isIncomplete: Bool {
    staleCount > 0 || airline == .unanswered || aircraft == .unanswered || origin == .unanswered
      || destination == .unanswered || weather == .unanswered
  }
}

/// One of the details of a flight.
enum Cell<Value: Hashable & Sendable>: Hashable, Sendable {
  /// There is no answer yet.
  case pending
  /// The value, or `nil` if the origin has none.
  case answered(Value?, isStale: Bool)
  /// The lookup failed, and there is no earlier answer.
  case unanswered

  /// Creates a cell from the result of a lookup.
  init(_ result: Result<Response<Value?>, any Error>) {
    self =
      switch result {
      case .success(let response): .answered(response.value, isStale: response.isStale)
      case .failure(is CancellationError): .pending
      case .failure: .unanswered
      }
  }

  /// The value, if there is one.
  var value: Value? {
    if case .answered(let value, _) = self { value } else { nil }
  }

  /// Whether the answer is stale.
  var isStale: Bool {
    if case .answered(_, let isStale) = self { isStale } else { false }
  }
}
