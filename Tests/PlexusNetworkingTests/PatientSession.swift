import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A session that waits for an answer as long as a busy machine may take.
let patientSession: URLSession = {
  let configuration = URLSessionConfiguration.ephemeral
  configuration.urlCache = nil
  configuration.timeoutIntervalForRequest = 600
  return URLSession(configuration: configuration)
}()
