import PlexusRedis
import TestSupport

extension RedisServer {
  var address: RedisAddress { .unix(path: socket) }
}
