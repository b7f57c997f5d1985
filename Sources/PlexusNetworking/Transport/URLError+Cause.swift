internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension URLError {
  /// The same error with the code that names its cause.
  ///
  /// Foundation's URLSession on Linux has few codes for the errors of curl. A certificate that is not trusted
  /// and an answer that breaks off are both unknown, and either looks like a refused connection if another
  /// address of the host has refused one; curl's own words tell them apart. A code that is known to be right
  /// stays, and words that are not known here leave the code as it is.
  var namingItsCause: URLError {
    #if canImport(FoundationNetworking)
    guard self.code != .timedOut, let words = userInfo[NSLocalizedDescriptionKey] as? String,
      let code = Self.code(ofWords: words.lowercased()), code != self.code
    else { return self }
    return URLError(code, userInfo: userInfo)
    #else
    return self
    #endif
  }

  /// Returns the code for an error message of curl, in lower case.
  static func code(ofWords words: String) -> Code? {
    causes.first { words.contains($0.words) }?.code
  }

  /// The words of errors with their codes; the first that occurs counts.
  ///
  /// Those of connections are the only ones of a failure of connectivity, and come after those of TLS that
  /// contain them.
  private static let causes: [(words: String, code: Code)] = [
    // TLS, first of all trust.
    ("ssl certificate", .serverCertificateUntrusted),
    ("certificate verif", .serverCertificateUntrusted),
    ("ssl peer certificate", .serverCertificateUntrusted),
    ("certificate subject name", .serverCertificateUntrusted),
    ("alternative certificate", .serverCertificateUntrusted),
    ("certificate status", .serverCertificateUntrusted),
    ("public key does not match", .serverCertificateUntrusted),
    ("ssl_error_syscall", .networkConnectionLost),
    ("unexpected eof while reading", .networkConnectionLost),
    // Connections that were not made, or that broke off.
    ("connection reset by peer", .networkConnectionLost),
    ("connection was reset", .networkConnectionLost),
    ("broken pipe", .networkConnectionLost),
    ("empty reply from server", .networkConnectionLost),
    ("server returned nothing", .networkConnectionLost),
    ("transfer closed with", .networkConnectionLost),
    ("transferred a partial file", .networkConnectionLost),
    ("connection died", .networkConnectionLost),
    ("proxy connect aborted", .networkConnectionLost),
    ("could not resolve", .cannotFindHost),
    ("couldn't resolve", .cannotFindHost),
    ("network is unreachable", .notConnectedToInternet),
    ("failed to connect", .cannotConnectToHost),
    ("couldn't connect to server", .cannotConnectToHost),
    ("could not connect to server", .cannotConnectToHost),
    // Answers that cannot be understood.
    ("content unencoding", .cannotDecodeContentData),
    ("content encoding", .cannotDecodeContentData),
    ("content-encoding", .cannotDecodeContentData),
    ("chunk", .cannotParseResponse),
    ("http/0.9", .cannotParseResponse),
    ("unsupported http", .cannotParseResponse),
    ("header", .cannotParseResponse),
    ("content-length", .cannotParseResponse),
    ("weird server reply", .cannotParseResponse),
    ("http/2 stream", .cannotParseResponse),
    ("http2 framing", .cannotParseResponse),
    // Whatever else is wrong with TLS.
    ("ssl", .secureConnectionFailed),
    ("tls", .secureConnectionFailed),
    ("recv failure", .networkConnectionLost),
    ("send failure", .networkConnectionLost),
    ("failure when receiving", .networkConnectionLost),
    ("failed sending data", .networkConnectionLost),
  ]
}
