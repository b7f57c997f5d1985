internal import Foundation
internal import Plexus

/// The failure of a fetch, for the nodes that have waited for it.
struct FailurePayload: Codable, Sendable {
  let description: String
  let isConnectivityFailure: Bool
  let isOriginFailure: Bool
  /// The size of the value that the server did not take: the nodes that have waited for it fetch by themselves.
  var refusedSize: Int?
}

extension FailurePayload {
  /// Reads a payload, which can be damaged.
  init(_ bytes: [UInt8]) {
    self =
      (try? RedisCoding.decoder.decode(Self.self, from: Data(bytes)))
      ?? FailurePayload(
        description: "The fetch of another process has failed.",
        isConnectivityFailure: false,
        isOriginFailure: true
      )
  }

  /// The failure as a cache gets it.
  var failure: SharedCache.Failure {
    SharedCache.Failure(
      description: description,
      isConnectivityFailure: isConnectivityFailure,
      isOriginFailure: isOriginFailure
    )
  }
}
