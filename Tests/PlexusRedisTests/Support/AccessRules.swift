import Foundation
import Testing

/// The rules of users in the article for operators.
enum AccessRules {
  /// Returns the rules of a user: the words after `ACL SETUSER` and its name.
  static func rules(of user: String) throws -> [String] {
    let article = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/PlexusRedis/PlexusRedis.docc/operating-a-server.md")
    let text = try String(contentsOf: article.standardized, encoding: .utf8)
    let blocks = text.split(separator: "```").map { $0.replacing("\\\n", with: " ") }
    let prefix = "text\nACL SETUSER \(user) "
    let block = try #require(
      blocks.first { $0.hasPrefix(prefix) },
      "The article does not name the user \(user)"
    )
    return block.dropFirst(prefix.count).split(whereSeparator: \.isWhitespace).map(String.init)
  }
}
