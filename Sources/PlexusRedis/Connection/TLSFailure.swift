/// The reason why a connection could not be encrypted.
struct TLSFailure: Error {
  let reason: String
  /// Whether a certificate is the reason, which another attempt does not change.
  var isUntrusted = false
}
