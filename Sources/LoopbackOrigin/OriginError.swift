internal import PlexusSupport

/// An error of an origin that cannot serve.
public enum OriginError: Error, Hashable, Sendable {
  /// The port is in use.
  case portInUse(UInt16)

  /// The origin has been stopped.
  case stopped

  /// A system call failed.
  case system(call: String, code: Int32)
}

extension OriginError: CustomStringConvertible {
  /// A sentence that describes the error and, where possible, a remedy.
  public var description: String {
    switch self {
    case .portInUse(let port):
      "Port \(port) is in use; choose another one, or 0 for any free port."
    case .stopped:
      "The origin has been stopped; create a new one."
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
