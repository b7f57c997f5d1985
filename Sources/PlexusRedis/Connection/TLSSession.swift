// Unsafe: calls of OpenSSL, with pointers to its objects and to arrays that outlive the calls.
//
// @unchecked Sendable: the objects of OpenSSL are used under the lock only, and freed with the last reference.

#if TLS
internal import COpenSSL
internal import PlexusSupport

/// The encryption of one connection, by OpenSSL over a socket that never blocks.
///
/// The server's certificate is verified, with its host name. TLS 1.2 is the lowest version.
final class TLSSession: @unchecked Sendable {
  /// The direction in which a handshake waits for the socket.
  enum Need: Sendable {
    case toRead, toWrite
  }

  /// An object of OpenSSL, which is freed with it.
  @safe
  private final class Owned {
    let pointer: OpaquePointer
    private let free: (OpaquePointer) -> Void

    init(_ pointer: OpaquePointer?, free: @escaping (OpaquePointer) -> Void) throws(TLSFailure) {
      guard let pointer = unsafe pointer else { throw TLSFailure(reason: TLSSession.lastError()) }
      unsafe (self.pointer, self.free) = (pointer, free)
    }

    deinit {
      unsafe free(pointer)
    }
  }

  // In the order in which they are freed.
  private let session: Owned
  private let context: Owned
  private let method: Owned
  /// The error after which the session must not be used, under the lock of the session.
  private let failure = Locked<String?>(nil)

  /// Creates the encryption of a socket.
  ///
  /// - Parameters:
  ///   - descriptor: The socket, which stays the caller's.
  ///   - host: The name or the numeric address that the certificate has to be valid for.
  ///   - ca: A file with the certificates of the trusted authorities, in PEM format; `nil` for those of the system.
  ///   - certificate: A file with the certificate of the client, followed by those of its authorities, if it has one.
  ///   - key: A file with the private key of the client; `nil` if it is in the file of the certificate.
  /// - Throws: The reason why there is no encryption.
  init(
    over descriptor: Int32,
    host: String,
    ca: String?,
    certificate: String? = nil,
    key: String? = nil
  ) throws(TLSFailure) {
    let context = try Self.context(ca: ca, certificate: certificate, key: key)
    let method = try unsafe Owned(unsafe plexus_tls_make_method()) { unsafe BIO_meth_free($0) }
    let session = try unsafe Owned(unsafe SSL_new(context.pointer)) { unsafe SSL_free($0) }
    let parameters = unsafe SSL_get0_param(session.pointer)
    // An address is compared with the addresses of the certificate, a name with its names.
    if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, host) != 1 {
      ERR_clear_error()
      guard unsafe SSL_set1_host(session.pointer, host) == 1,
        unsafe plexus_tls_set_server_name(session.pointer, host) == 1
      else { throw TLSFailure(reason: Self.lastError()) }
    }
    guard let bio = unsafe plexus_tls_make_bio(method.pointer, descriptor) else {
      throw TLSFailure(reason: Self.lastError())
    }
    // The session owns it.
    unsafe SSL_set_bio(session.pointer, bio, bio)
    unsafe plexus_tls_allow_partial_writes(session.pointer)
    unsafe SSL_set_connect_state(session.pointer)
    (self.session, self.context, self.method) = (session, context, method)
  }

  /// Creates the settings of a session, which verifies the server.
  private static func context(
    ca: String?,
    certificate: String?,
    key: String?
  ) throws(TLSFailure) -> Owned {
    ERR_clear_error()
    let context = try unsafe Owned(unsafe SSL_CTX_new(TLS_client_method())) {
      unsafe SSL_CTX_free($0)
    }
    guard unsafe plexus_tls_require_1_2(context.pointer) == 1 else {
      throw TLSFailure(reason: lastError())
    }
    if let ca {
      guard unsafe SSL_CTX_load_verify_locations(context.pointer, ca, nil) == 1 else {
        let reason = "the file \(ca) has no certificates: \(lastError())"
        throw TLSFailure(reason: reason, isUntrusted: true)
      }
    } else {
      guard unsafe SSL_CTX_set_default_verify_paths(context.pointer) == 1 else {
        throw TLSFailure(reason: lastError())
      }
    }
    unsafe SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
    if let certificate {
      guard unsafe SSL_CTX_use_certificate_chain_file(context.pointer, certificate) == 1 else {
        let reason = "the file \(certificate) has no certificate: \(lastError())"
        throw TLSFailure(reason: reason, isUntrusted: true)
      }
      let key = key ?? certificate
      guard unsafe SSL_CTX_use_PrivateKey_file(context.pointer, key, SSL_FILETYPE_PEM) == 1 else {
        let reason = "the file \(key) has no private key of the certificate: \(lastError())"
        throw TLSFailure(reason: reason, isUntrusted: true)
      }
    }
    return context
  }

  /// Continues the handshake.
  ///
  /// - Returns: What it waits for; `nil` once the connection is encrypted and the certificate verified.
  /// - Throws: The reason why there is no encryption.
  func handshake() throws(TLSFailure) -> Need? {
    let result = failure.withLock { failure -> Result<Need?, TLSFailure> in
      if let failure { return .failure(TLSFailure(reason: failure)) }
      ERR_clear_error()
      let status = unsafe SSL_do_handshake(session.pointer)
      if status == 1 { return .success(nil) }
      switch unsafe SSL_get_error(session.pointer, status) {
      case SSL_ERROR_WANT_READ: return .success(.toRead)
      case SSL_ERROR_WANT_WRITE: return .success(.toWrite)
      default: break
      }
      let verdict = unsafe SSL_get_verify_result(session.pointer)
      let isUntrusted = verdict != Int(X509_V_OK)
      let reason: String
      if isUntrusted {
        let text = unsafe String(cString: X509_verify_cert_error_string(verdict))
        reason = "the server's certificate was refused: \(text)"
      } else {
        reason = "the TLS handshake failed: \(Self.lastError())"
      }
      failure = reason
      return .failure(TLSFailure(reason: reason, isUntrusted: isUntrusted))
    }
    return try result.get()
  }

  /// Reads the bytes that have arrived, as far as they fit.
  func read(into buffer: inout [UInt8]) -> RedisSocket.Transfer {
    failure.withLock { failure in
      if let failure { return .ended(reason: failure) }
      ERR_clear_error()
      let count = unsafe buffer.withUnsafeMutableBytes { bytes in
        unsafe SSL_read(session.pointer, bytes.baseAddress, Int32(clamping: bytes.count))
      }
      return transfer(count, &failure)
    }
  }

  /// Writes bytes, as far as the system takes them.
  ///
  /// After ``RedisSocket/Transfer/wouldBlock`` the next call has to begin with the same bytes.
  func write(_ bytes: ArraySlice<UInt8>) -> RedisSocket.Transfer {
    failure.withLock { failure in
      if let failure { return .ended(reason: failure) }
      ERR_clear_error()
      let count = unsafe bytes.withUnsafeBytes { bytes in
        unsafe SSL_write(session.pointer, bytes.baseAddress, Int32(clamping: bytes.count))
      }
      return transfer(count, &failure)
    }
  }

  private func transfer(_ count: Int32, _ failure: inout String?) -> RedisSocket.Transfer {
    if count > 0 { return .bytes(Int(count)) }
    let reason: String
    switch unsafe SSL_get_error(session.pointer, count) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .wouldBlock
    case SSL_ERROR_ZERO_RETURN: reason = "the server closed it"
    default: reason = Self.lastError()
    }
    failure = reason
    return .ended(reason: reason)
  }

  /// Returns the description of the last error of OpenSSL on this thread.
  private static func lastError() -> String {
    let code = ERR_get_error()
    guard code != 0 else { return "the server closed it" }
    return unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
      ?? "OpenSSL failed with the error \(code)"
  }
}
#endif
