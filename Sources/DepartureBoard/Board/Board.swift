import Plexus

/// The board: it follows what is announced, and asks what its rows need to know.
@MainActor
final class Board {
  /// What is on the board.
  private(set) var state = BoardState()
  /// Tells each moment of the day whose announcements have been dealt with.
  let moments = Messenger<Duration>()

  private let lookUp: @Sendable (Flight) async -> RowDetails
  /// Whether no moment is over before all rows have been answered.
  private let waitsForAnswers: Bool
  private var questions: [Flight.ID: Task<Void, Never>] = [:]

  /// Creates an empty board.
  ///
  /// - Parameters:
  ///   - waitsForAnswers: Whether no moment is over before all rows have been answered.
  ///   - lookUp: What returns the details of a flight.
  init(
    waitsForAnswers: Bool,
    lookUp: @escaping @concurrent @Sendable (Flight) async -> RowDetails
  ) {
    self.waitsForAnswers = waitsForAnswers
    self.lookUp = lookUp
  }

  /// Follows announcements from now on, for as long as the board exists.
  func follow(_ announcements: Messenger<Announcement>) {
    announcements.observe(as: self) { board, announcement in
      await board.take(announcement)
    }
  }

  /// Waits until every row that has asked has its answer.
  func settle() async {
    while let question = questions.values.first { await question.value }
  }

  /// Gives up all questions.
  func stop() {
    for question in questions.values { question.cancel() }
  }

  /// The rows whose fate is known and that have been answered since the last call.
  func takeReports() -> [BoardRow] {
    state.takeReports()
  }

  private func take(_ announcement: Announcement) async {
    state.apply(announcement)
    guard case .clock(let moment) = announcement else { return }
    for flight in state.flightsToAsk() { ask(flight) }
    if waitsForAnswers { await settle() }
    moments.send(moment)
  }

  private func ask(_ flight: Flight) {
    questions[flight.id] = Task {
      let details = await lookUp(flight)
      state.answer(details, for: flight.id)
      questions[flight.id] = nil
    }
  }
}
