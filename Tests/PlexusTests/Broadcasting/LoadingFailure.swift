import Plexus

/// The description of a state, for comparison.
func words(_ state: LoadState<Int>) -> String {
  switch state {
  case .unknown: "unknown"
  case .loading(let previous): "loading(\(previous.map(String.init) ?? "-"))"
  case .loaded(let value): "loaded(\(value))"
  case .failed(let error, let previous): "failed(\(error), \(previous.map(String.init) ?? "-"))"
  }
}

/// An error of an operation that loads a value.
enum LoadingFailure: Error, Equatable {
  case first
  case second
}
