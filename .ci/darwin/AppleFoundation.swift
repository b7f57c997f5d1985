// Foundation of Apple's systems, as far as the sources use it: one module, which has Dispatch and the C library
// with it. That of Linux has the C library of Linux with it: only types are taken from there.

@_exported public import Darwin
@_exported public import Dispatch
@_exported public import FoundationEssentials
public import Foundation
@_exported public import FoundationNetworking

public typealias Bundle = Foundation.Bundle
public typealias CGSize = Foundation.CGSize
public typealias FileHandle = Foundation.FileHandle
public typealias NSObject = Foundation.NSObject
public typealias OperationQueue = Foundation.OperationQueue
public typealias POSIXError = Foundation.POSIXError
public typealias POSIXErrorCode = Foundation.POSIXErrorCode
public typealias URLError = Foundation.URLError

public let NSURLAuthenticationMethodDefault = "default"
public let NSURLAuthenticationMethodHTTPBasic = "basic"
public let NSURLAuthenticationMethodHTTPDigest = "digest"
public let NSURLAuthenticationMethodNTLM = "NTLM"
public let NSURLAuthenticationMethodNegotiate = "negotiate"

extension URL {
  public static var cachesDirectory: URL { URL(filePath: "/") }
}
