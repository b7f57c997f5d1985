/// An error of ``EventBus/publish(_:scope:)``.
@nonexhaustive
public enum LinkPublishError: Error {
  /// The bus is not connected to a link for that type and scope. Nothing was posted.
  case notConnected(type: String)
  /// The engine does not have the event, or did not confirm it, by topic.
  ///
  /// Any local post has happened, and other nodes may have received the event.
  case failed([String: any Error])
}

extension LinkPublishError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .notConnected(let type):
      "The bus has no connection for \(type) in that scope. Call connect(_:as:over:_:) first, and keep its token."
    case .failed(let failures):
      failures.sorted { $0.key < $1.key }
        .map { "The topic \($0.key) did not confirm the event: \($0.value)" }
        .joined(separator: " ")
    }
  }
}
