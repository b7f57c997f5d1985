import Hummingbird
import Plexus
import ServiceLifecycle

/// The tenant of a user is in the id: 7001 belongs to the tenant 7.
struct User: ResponseCodable, Sendable {
  var id: Int
  var name: String
}

/// A user has another name.
struct UserRenamed: Event, Codable {
  var id: Int
}

func addRoutes(
  to router: Router<BasicRequestContext>,
  _ users: MultiplexerMap<Int, User>,
  _ renamed: CurrentValue<[Int]>
) {
  router.get("users/:id") { _, context in
    let id = try context.parameters.require("id", as: Int.self)
    return try await users.request(id)
  }
  router.delete("tenants/:id") { _, context in
    let id = try context.parameters.require("id", as: Int.self)
    // When it returns, no node answers with a copy.
    try await MuxRepository.shared.clear(tags: [CacheTag("tenant:\(id)")], .everywhere)
    return HTTPResponse.Status.noContent
  }
  router.post("renamed/:id") { _, context in
    let id = try context.parameters.require("id", as: Int.self)
    try await EventBus.shared.publish(UserRenamed(id: id))
    return HTTPResponse.Status.accepted
  }
  // Answers once the node has received an event of the user, and if it ends before.
  router.get("renamed/:id") { _, context in
    let id = try context.parameters.require("id", as: Int.self)
    for await ids in renamed.subscribe().cancelOnGracefulShutdown() where ids.contains(id) {
      return HTTPResponse.Status.ok
    }
    return HTTPResponse.Status.serviceUnavailable
  }
}
