internal import LoopbackOrigin

/// An error of an inspector that cannot serve its page.
///
/// ## Topics
///
/// ### Errors
/// - ``invalidPort(_:)``
/// - ``portInUse(_:)``
/// - ``system(_:)``
public enum InspectorError: Error, Hashable, Sendable {
  /// The number is not a port.
  case invalidPort(Int)
  /// Another program uses the port, or another inspector does.
  case portInUse(Int)
  /// The system could not provide a socket or a thread, with the failed call and the reason.
  case system(String)
}

extension InspectorError: CustomStringConvertible {
  /// A sentence that describes the error and, where possible, a remedy.
  public var description: String {
    switch self {
    case .invalidPort(let port):
      "\(port) is not a port; choose one from 1 to 65535, or 0 for any free port."
    case .portInUse(let port):
      "Port \(port) is in use; choose another one, or 0 for any free port."
    case .system(let text): text
    }
  }
}

extension InspectorError {
  init(_ error: OriginError) {
    self =
      switch error {
      case .portInUse(let port): .portInUse(Int(port))
      case .stopped, .system: .system("\(error)")
      }
  }
}
