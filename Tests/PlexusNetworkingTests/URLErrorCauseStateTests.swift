import Foundation
import Plexus
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce) struct `The cause of a URL error` {
  @Test(
    arguments: [
      ("SSL certificate problem: self-signed certificate", .serverCertificateUntrusted),
      (
        "SSL: no alternative certificate subject name matches target host name 'a.example'",
        .serverCertificateUntrusted
      ),
      ("SSL peer certificate or SSH remote key was not OK", .serverCertificateUntrusted),
      (
        "OpenSSL SSL_connect: Connection reset by peer in connection to a.example:443",
        .networkConnectionLost
      ),
      (
        "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to a.example:443",
        .networkConnectionLost
      ),
      (
        "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number", .secureConnectionFailed
      ),
      ("Empty reply from server", .networkConnectionLost),
      ("transfer closed with 95 bytes remaining to read", .networkConnectionLost),
      ("Recv failure: Connection reset by peer", .networkConnectionLost),
      ("Could not resolve host: ssl.example", .cannotFindHost),
      (
        "Failed to connect to chunk.example port 80 after 0 ms: Couldn't connect to server",
        .cannotConnectToHost
      ),
      ("Error while processing content unencoding: incorrect data check", .cannotDecodeContentData),
      ("Illegal or missing hexadecimal sequence in chunked-encoding", .cannotParseResponse),
      ("Received HTTP/0.9 when not allowed", .cannotParseResponse),
      ("Too large response headers: 307204 > 307200", .cannotParseResponse),
    ] as [(String, URLError.Code)]
  )
  func `the cause of a URL error is found in the words of curl`(words: String, code: URLError.Code)
  {
    #expect(URLError.code(ofWords: words.lowercased()) == code)
  }

  @Test func `the cause of a URL error is not looked for where nothing is said`() {
    #expect(URLError.code(ofWords: "the operation could not be completed") == nil)
    #expect(URLError(.unknown).namingItsCause.code == .unknown)
    let late = URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: "SSL connection timeout"])
    #expect(late.namingItsCause.code == .timedOut)
  }

  #if canImport(FoundationNetworking)
  @Test
  func `the cause of a URL error counts more than a connection that another address has refused`() {
    let words = [NSLocalizedDescriptionKey: "SSL certificate problem: self-signed certificate"]
    let error = URLError(.cannotConnectToHost, userInfo: words).namingItsCause
    #expect(error.code == .serverCertificateUntrusted)
    #expect(!error.isConnectivityFailure)
  }
  #endif
}
