import AsyncAlgorithms
import Plexus
import ServiceLifecycle

struct UserRenamed: Event {
  var id: Int
}

/// Renews users that were renamed: those of a tenth of a second, or five hundred, with one call.
struct UserRefresh<C: Clock>: Service where C.Duration == Duration {
  let renamed: Subscription<UserRenamed>
  let users: MultiplexerMap<Int, String>
  var limit = 500
  let clock: C

  func run() async {
    let batches = renamed.cancelOnGracefulShutdown()
      .chunks(ofCount: limit, or: .repeating(every: .milliseconds(100), clock: clock))
    for await events in batches {
      let ids = Set(events.map(\.id))
      // What failed stays outdated, and is fetched by the next request.
      _ = await users.refresh(ids).request(ids)
    }
  }
}
