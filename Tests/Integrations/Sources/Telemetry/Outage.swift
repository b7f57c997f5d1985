/// Whether something fails, and since when: one line for the beginning and one for the end, however many failures.
struct Outage {
  enum Change: Equatable {
    case began
    case ended(failures: Int, duration: Duration)
  }

  /// The time without a failure after which a success ends the outage.
  var quiet: Duration = .seconds(10)
  private var began: Duration?
  private var last: Duration = .zero
  private var failures = 0

  init(quiet: Duration = .seconds(10)) {
    self.quiet = quiet
  }

  mutating func failed(at time: Duration) -> Change? {
    last = time
    failures += 1
    guard began == nil else { return nil }
    began = time
    return .began
  }

  mutating func succeeded(at time: Duration) -> Change? {
    guard let start = began, time - last >= quiet else { return nil }
    defer { (began, failures) = (nil, 0) }
    return .ended(failures: failures, duration: last - start)
  }
}
