import PlexusNetworking

/// A transport that waits for an answer as long as a busy machine may take.
let patientTransport = URLSessionTransport(timeout: 600)

extension HTTPRules {
  /// Rules without limits of time, for a busy machine.
  static let patient = HTTPRules(
    maximumBodyBytes: nil,
    totalTimeout: nil,
    minimumRate: nil,
    allowsFileURLs: true
  )
}
