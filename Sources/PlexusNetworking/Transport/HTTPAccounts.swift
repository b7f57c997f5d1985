internal import Foundation

/// The accounts that a transport sends requests for.
///
/// A ``TokenTransport`` has them, and an ``HTTPCache`` above it keeps the answers for each account apart. A transport of
/// your own that wraps another one returns the accounts of that one in ``HTTPTransport/accounts``.
public struct HTTPAccounts: Sendable {
  /// Returns the account whose token is in memory.
  private let present: @Sendable (URL) -> String?
  /// Returns the account, after fetching its token if there is none.
  private let find: @Sendable (URL) async throws -> String?

  init(
    present: @escaping @Sendable (URL) -> String?,
    find: @escaping @Sendable (URL) async throws -> String?
  ) {
    self.present = present
    self.find = find
  }

  /// Returns the account that a request to a URL would be sent for now, as far as it is in memory.
  func present(for url: URL) -> String? { present(url) }

  /// Returns the account that a request to a URL is sent for; `nil` if it is sent without a token.
  func account(for url: URL) async throws -> String? { try await find(url) }
}
