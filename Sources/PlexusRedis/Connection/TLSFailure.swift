/// The reason why a connection could not be encrypted.
struct TLSFailure: Error {
  let reason: String
}
