import Foundation
import Plexus
import PlexusNetworking
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The connectivity of a URL error` {
  @Test(
    .guarantee(.unreachableServersAreConnectivityFailures),
    arguments: [
      URLError.Code.notConnectedToInternet,
      .networkConnectionLost,
      .cannotConnectToHost,
      .cannotFindHost,
      .dnsLookupFailed,
      .timedOut,
      .dataNotAllowed,
      .internationalRoamingOff,
      .callIsActive,
    ]
  )
  func `a URL error is one of connectivity when no host could be reached`(code: URLError.Code) {
    #expect(URLError(code).isConnectivityFailure)
  }

  @Test(
    .guarantee(.unreachableServersAreConnectivityFailures),
    arguments: [
      URLError.Code.secureConnectionFailed,
      .serverCertificateUntrusted,
      .serverCertificateHasBadDate,
      .serverCertificateHasUnknownRoot,
      .serverCertificateNotYetValid,
      .clientCertificateRejected,
      .clientCertificateRequired,
      .appTransportSecurityRequiresSecureConnection,
    ]
  )
  func `a URL error is not one of connectivity when the other side could not be trusted`(
    code: URLError.Code
  ) {
    #expect(!URLError(code).isConnectivityFailure)
  }

  @Test(arguments: [
    URLError.Code.unknown,
    .cancelled,
    .badURL,
    .unsupportedURL,
    .httpTooManyRedirects,
    .redirectToNonExistentLocation,
    .resourceUnavailable,
    .badServerResponse,
    .userCancelledAuthentication,
    .userAuthenticationRequired,
    .zeroByteResource,
    .cannotDecodeRawData,
    .cannotDecodeContentData,
    .cannotParseResponse,
    .fileDoesNotExist,
    .noPermissionsToReadFile,
    .dataLengthExceedsMaximum,
    .cannotCreateFile,
    .cannotWriteToFile,
  ])
  func `a URL error is not one of connectivity when an answer came, or nothing was asked`(
    code: URLError.Code
  ) {
    #expect(!URLError(code).isConnectivityFailure)
  }

  @Test(.guarantee(.policyDefaultsAreDocumented))
  func `a URL error of connectivity makes a cache keep to its value by default`() {
    let policy = CachePolicy()
    #expect(policy.usesCachedValue(URLError(.notConnectedToInternet)))
    #expect(!policy.usesCachedValue(URLError(.secureConnectionFailed)))
    #expect(!policy.usesCachedValue(URLError(.badServerResponse)))
  }
}
