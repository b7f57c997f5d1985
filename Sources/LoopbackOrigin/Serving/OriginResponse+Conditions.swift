extension OriginResponse {
  /// Returns the response after evaluating the conditions and the range of the request.
  func applyingConditions(of request: OriginRequest) -> OriginResponse {
    guard status == 200, request.method == .get || request.method == .head else { return self }
    if isUnchanged(for: request) { return notModified }
    guard allowsRanges, request.method == .get else { return self }
    if let condition = request.headers["If-Range"], !isUnchanged(since: condition) { return self }
    switch ByteRange(request.headers["Range"], length: body.count) {
    case .whole:
      return self
    case .part(let range):
      var response = self
      response.status = 206
      response.headers["Content-Range"] =
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)"
      response.body = Array(body[range])
      return response
    case .unsatisfiable:
      var response = self
      response.status = 416
      response.headers["Content-Range"] = "bytes */\(body.count)"
      response.headers["Content-Type"] = nil
      response.body = []
      return response
    }
  }

  private var notModified: OriginResponse {
    var response = self
    response.status = 304
    response.headers["Content-Type"] = nil
    response.body = []
    return response
  }

  /// Returns whether the client has this version.
  private func isUnchanged(for request: OriginRequest) -> Bool {
    if let known = request.headers["If-None-Match"] {
      if known == "*" { return true }
      guard let etag else { return false }
      return known.split(separator: ",").contains { candidate in
        candidate.trimmed.withoutWeakness == etag[...].withoutWeakness
      }
    }
    guard let date = request.headers["If-Modified-Since"] else { return false }
    return date == headers["Last-Modified"]
  }

  /// Returns whether a part of this version can be combined with the version that the client has.
  private func isUnchanged(since condition: String) -> Bool {
    if condition == headers["Last-Modified"] { return true }
    // Equal weak tags do not imply equal bytes.
    return condition == etag && !condition.hasPrefix("W/")
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    var rest = drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }

  fileprivate var withoutWeakness: Substring { hasPrefix("W/") ? dropFirst(2) : self }
}
