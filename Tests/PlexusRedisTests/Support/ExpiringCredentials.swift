import PlexusRedis
import TestSupport

/// Returns a source of credentials that expire soon, with the passwords `token 1`, `token 2` and so on.
func expiringCredentials(of user: String) -> @Sendable () async throws -> RedisCredentials {
  let asked = Guarded(0)
  return {
    let number = asked.withLock { asked in
      asked += 1
      return asked
    }
    return RedisCredentials(
      user: user,
      password: "token \(number)",
      expires: .now + .milliseconds(200)
    )
  }
}
