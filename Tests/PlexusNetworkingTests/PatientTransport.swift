import PlexusNetworking

/// A transport that waits for an answer as long as a busy machine may take.
let patientTransport = URLSessionTransport(timeout: 600)
