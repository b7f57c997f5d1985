/// The reasons why an origin cannot serve.
public enum OriginError: Error, Hashable, Sendable {
  /// Somebody else listens on the port.
  case portInUse(UInt16)

  /// The origin has been stopped.
  case stopped

  /// The system refused something.
  case system(call: String, code: Int32)
}

extension OriginError: CustomStringConvertible {
  /// A sentence that says what happened and what to do about it.
  public var description: String {
    switch self {
    case .portInUse(let port):
      "Port \(port) is in use; choose another one, or 0 for any that is free."
    case .stopped:
      "The origin has been stopped; make a new one."
    case .system(let call, let code):
      SystemError(call: call, code: code).description
    }
  }
}

extension OriginError {
  init(_ error: SystemError) {
    self = .system(call: error.call, code: error.code)
  }
}
