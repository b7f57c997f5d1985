// The context of the samples that are files of a server.

import Vapor

struct Profile: Content {
  var name = "Ada"
}

struct User: Sendable {
  var name = "Ada"
}

struct Database: Sendable {
  func user(_ id: Int) async throws -> User { User() }
  func save(_ profile: Profile) async throws {}
}

let database = Database()
