import Foundation
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

/// Redirections by servers that answer as a test determines.
@Suite(.fewAtOnce)
struct `The way of a command through a cluster` {
  /// The answers of two servers, which both know which of them has the slots.
  private final class Answers: Sendable {
    typealias Answer = @Sendable (Answers, _ server: Int, AnsweringServer.Command) -> String?

    let ports = Guarded<[UInt16]>([])
    let commands = Log<(server: Int, words: [String])>()
    private let answer: Answer
    /// Whether the servers say which of them has the slots.
    private let knowsMap: @Sendable () -> Bool
    /// The number of the server that has the slots.
    private let owner = Guarded(0)

    init(_ answer: @escaping Answer, map knowsMap: @escaping @Sendable () -> Bool = { true }) {
      (self.answer, self.knowsMap) = (answer, knowsMap)
    }

    func reply(of server: Int, to command: AnsweringServer.Command) -> String? {
      switch command.words[0] {
      case "HELLO":
        return AnsweringServer.clusterHello
      case "CLUSTER":
        guard knowsMap() else { return nil }
        let owner = owner.withLock { $0 }
        let port = ports.withLock { $0[owner] }
        return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:\(port)\r\n"
      default:
        commands.append((server, command.words))
        return answer(self, server, command)
      }
    }

    func moved(to server: Int) -> String {
      owner.withLock { $0 = server }
      return "-MOVED 5 127.0.0.1:\(ports.withLock { $0[server] })\r\n"
    }

    /// The answer of a server that does not know the host of the other one.
    func movedToUnknownHost(of server: Int) -> String {
      owner.withLock { $0 = server }
      return "-MOVED 5 ?:1\r\n"
    }

    func ask(_ server: Int) -> String { "-ASK 5 127.0.0.1:\(ports.withLock { $0[server] })\r\n" }
  }

  /// A route over two servers.
  private struct Trial {
    let route: Route
    let cluster: Cluster
    private let router: Router
    private let servers: [AnsweringServer]
    private let answers: Answers

    /// The changes of what servers refuse.
    let refusals = Log<RedisEngineError?>()

    init(
      _ answers: Answers,
      timeout: Duration = .seconds(60),
      limit: Int = Router.limit
    ) throws {
      let servers = try (0..<2).map { number in
        try AnsweringServer { answers.reply(of: number, to: $0) }
      }
      let addresses = servers.map(\.address)
      answers.ports.withLock { ports in
        for case .tcp(_, let port) in addresses { ports.append(port) }
      }
      var settings = RedisConnection.Settings(.cluster(addresses))
      let cluster = try Cluster(addresses)
      settings.cluster = cluster
      settings.commandTimeout = timeout
      let router = Router(settings, limit: limit)
      try cluster.begin(
        settings,
        isAnswering: { [weak router] in router?.isAnswering(at: $0) ?? false },
        onEvent: { _ in }
      )
      router.observe { [refusals] event, _ in
        if case .refusal(let refusal) = event { refusals.append(refusal) }
      }
      (self.answers, self.servers, self.cluster, self.router) = (answers, servers, cluster, router)
      let route = Route(router, for: "{space}:key")
      cluster.observe { route.update() }
      self.route = route
    }

    /// The first words of the commands that each server has received.
    var received: [[String]] {
      (0..<2).map { server in
        answers.commands.entries.filter { $0.server == server }.map {
          $0.words.joined(separator: " ")
        }
      }
    }

    func forgetNotes(after pause: Duration) { router.forgetNotes(after: pause) }

    func address(of server: Int) -> RedisAddress { servers[server].address }

    func close() async {
      await router.close()
      await cluster.close()
    }
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a command that a server sends elsewhere is sent there, and so are later ones`()
    async throws
  {
    let servers = Answers { answers, server, _ in
      server == 0 ? answers.moved(to: 1) : "+done\r\n"
    }
    let trial = try Trial(servers)
    for name in ["a", "b"] {
      #expect(try await trial.route.send(RedisCommand("GET", [.text(name)])).text == "done")
    }
    #expect(trial.received[0] == ["GET a"])
    #expect(trial.received[1] == ["GET a", "GET b"])
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `only the command goes to a server that is to get the slot`() async throws {
    let servers = Answers { answers, server, _ in
      server == 0 ? answers.ask(1) : "+done\r\n"
    }
    let trial = try Trial(servers)
    for name in ["a", "b"] {
      #expect(try await trial.route.send(RedisCommand("GET", [.text(name)])).text == "done")
    }
    #expect(trial.received[0] == ["GET a", "GET b"])
    #expect(trial.received[1] == ["ASKING", "GET a", "ASKING", "GET b"])
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce), arguments: [false, true])
  func `of several commands only those are sent again that were not executed`(
    repeatsAll: Bool
  ) async throws {
    let servers = Answers { answers, server, command in
      let isSentElsewhere = server == 0 && command.words.last == "b"
      return isSentElsewhere ? answers.moved(to: 1) : "+\(server)\r\n"
    }
    let trial = try Trial(servers)
    let commands = ["a", "b", "c"].map { RedisCommand("INCR", [.text($0)]) }
    let replies = await trial.route.send(commands, repeatsAll: repeatsAll)
    #expect(
      try replies.map { try $0.get().text } == (repeatsAll ? ["1", "1", "1"] : ["0", "1", "0"])
    )
    #expect(trial.received[1] == (repeatsAll ? ["INCR a", "INCR b", "INCR c"] : ["INCR b"]))
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a command that cannot be executed at present is sent again`() async throws {
    let count = Guarded(0)
    let servers = Answers { _, _, _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      return number < 4
        ? "-TRYAGAIN Multiple keys request during rehashing of slot\r\n" : "+done\r\n"
    }
    let trial = try Trial(servers)
    #expect(try await trial.route.send(RedisCommand("GET", ["a"])).text == "done")
    #expect(trial.received[0].count == 4)
    await trial.close()
  }

  @Test(.guarantee(.clusterServersAreNotTrusted), arguments: ["MOVED", "ASK"])
  func `servers that send a command to each other are given up`(code: String) async throws {
    let servers = Answers { answers, server, command in
      guard command.words[0] != "ASKING" else { return command.usual }
      return code == "MOVED" ? answers.moved(to: 1 - server) : answers.ask(1 - server)
    }
    let trial = try Trial(servers)
    let error = await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(error?.code == code)
    #expect(trial.received.joined().count { $0 == "GET a" } <= 17)
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a command that is never executed fails within the time of a command`() async throws {
    let servers = Answers { _, _, _ in "-CLUSTERDOWN Hash slot not served\r\n" }
    let trial = try Trial(servers, timeout: .seconds(3))
    let error = await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(error?.code == "CLUSTERDOWN")
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a master that is cut off from the others is left for the one that has replaced it`()
    async throws
  {
    let servers = Answers { answers, server, _ in
      guard server == 0 else { return "+done\r\n" }
      _ = answers.moved(to: 1)
      return "-CLUSTERDOWN The cluster is down\r\n"
    }
    let trial = try Trial(servers)
    #expect(try await trial.route.send(RedisCommand("GET", ["a"])).text == "done")
    #expect(trial.route.master?.address == trial.address(of: 1))
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `another error is that of the command, and is not sent again`() async throws {
    let servers = Answers { _, _, _ in "-ERR wrong\r\n" }
    let trial = try Trial(servers)
    let error = await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(error?.description == "ERR wrong")
    #expect(trial.received[0] == ["GET a"])
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a cancelled call ends at once, also while it waits to be sent again`() async throws {
    let servers = Answers { _, _, _ in "-TRYAGAIN x\r\n" }
    let trial = try Trial(servers)
    let task = Task { try await trial.route.send(RedisCommand("GET", ["a"])) }
    await servers.commands.first(2)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    await trial.close()
  }

  /// The owner of a route, which notes how its commands are sent.
  private final class Passages: RouteOwner {
    let log = Log<Passage>()

    func prepare(_ passage: Passage) async throws { log.append(passage) }
    func routeMoved(_ route: Route, from former: Router.Master) {}
    func routeWasLeft() {}
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `the time of a command begins before it is sent elsewhere`() async throws {
    let received = Guarded<Nanoseconds>(0)
    let servers = Answers { answers, server, _ in
      guard server == 0 else { return "+done\r\n" }
      received.withLock { $0 = .now }
      return answers.moved(to: 1)
    }
    let trial = try Trial(servers)
    let passages = Passages()
    trial.route.begin(passages)
    #expect(try await trial.route.send(RedisCommand("GET", ["a"])).text == "done")
    // What prepares a server is a part of the command, too.
    let deadlines = Set(passages.log.entries.map(\.deadline))
    #expect(passages.log.count == 2 && deadlines.count == 1)
    let deadline = try #require(passages.log.entries.last?.deadline)
    #expect(deadline <= received.withLock { $0 } + 60_000_000_000)
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a server that answers late ends a redirected command at its deadline`() async throws {
    let silent = try AnsweringServer { $0.words[0] == "HELLO" ? $0.usual : nil }
    var settings = RedisConnection.Settings(silent.address)
    settings.commandTimeout = .seconds(600)
    let connection = try RedisConnection(settings) { _ in }
    let stopwatch = Stopwatch()
    let replies = await connection.send(
      [RedisCommand("GET", ["a"]), RedisCommand("GET", ["b"])],
      until: .now + 20_000_000
    )
    for reply in replies {
      #expect(throws: RedisConnectionError.timedOut(command: "GET", after: .seconds(600))) {
        try reply.get()
      }
    }
    #expect(stopwatch.elapsed < .seconds(300))
    await connection.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `what no server executes is refused until there was nothing like it for a while`()
    async throws
  {
    let servers = Answers { _, _, _ in "-CLUSTERDOWN The cluster is down\r\n" }
    let trial = try Trial(servers, timeout: .seconds(3))
    await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    let refusal = await trial.refusals.first(1)[0]
    #expect(refusal?.kind == .cluster)
    #expect(refusal?.description.contains("CLUSTERDOWN The cluster is down") == true)
    trial.forgetNotes(after: .seconds(60))
    #expect(trial.refusals.count == 1)
    while trial.refusals.count < 2 {
      trial.forgetNotes(after: .zero)
      await Task.detached {}.value
    }
    #expect(trial.refusals.entries[1] == nil)
    await trial.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `a server that knows no host of the master is asked where the slots are`()
    async throws
  {
    let servers = Answers { answers, server, _ in
      server == 0 ? answers.movedToUnknownHost(of: 1) : "+done\r\n"
    }
    let trial = try Trial(servers)
    #expect(try await trial.route.send(RedisCommand("GET", ["a"])).text == "done")
    #expect(trial.route.master?.address == trial.address(of: 1))
    await trial.close()
  }

  @Test(.guarantee(.clusterServersAreNotTrusted))
  func `redirections cannot make any number of connections`() async throws {
    let servers = Answers { answers, server, _ in
      server == 0 ? answers.ask(1) : "+done\r\n"
    }
    let trial = try Trial(servers, limit: 1)
    let error = await #expect(throws: RedisConnectionError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(error?.description.contains("there are connections to 1 other masters") == true)
    await trial.close()
  }

  @Test(.guarantee(.clusterServersAreNotTrusted))
  func `an old map takes no slot from a master that answers, and its server is left`()
    async throws
  {
    let (moved, kept, down) = (
      RedisAddress.tcp(host: "127.0.0.1", port: 1), RedisAddress.tcp(host: "127.0.0.1", port: 2),
      RedisAddress.tcp(host: "127.0.0.1", port: 3)
    )
    let old = try AnsweringServer { command in
      switch command.words[0] {
      case "HELLO": AnsweringServer.clusterHello
      case "CLUSTER":
        "*2\r\n*3\r\n:0\r\n:99\r\n*2\r\n+127.0.0.1\r\n:2\r\n"
          + "*3\r\n:100\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:3\r\n"
      default: command.usual
      }
    }
    let cluster = try Cluster([old.address])
    let settings = RedisConnection.Settings(.cluster([old.address]))
    try cluster.begin(settings, isAnswering: { $0 != down }, onEvent: { _ in })
    #expect(try await cluster.master(of: 0, within: .seconds(60)) == kept)
    let connection = try RedisConnection(RedisConnection.Settings(old.address)) { _ in }
    try cluster.move(0, to: moved, accordingTo: connection)
    await Failover.poll {
      cluster.search(for: [down])
      return cluster.servers[0] != old.address
    }
    #expect(cluster.knownMaster(of: 0) == moved)
    // That is neither a failure nor a reconnection.
    #expect(cluster.traffic?.errors[.notMaster] == nil)
    #expect(cluster.traffic.map { $0.connections <= 1 } == true)
    await connection.close()
    await cluster.close()
  }

  @Test(.guarantee(.clusterServersAreNotTrusted))
  func `an old map takes no other slot from a master that does not serve one of them`()
    async throws
  {
    let servers = Answers { _, _, _ in "-CLUSTERDOWN Hash slot not served\r\n" }
    let trial = try Trial(servers, timeout: .milliseconds(300))
    #expect(try await trial.cluster.master(of: 0, within: .seconds(60)) == trial.address(of: 0))
    // The map of both servers changes, and the first one still answers.
    _ = servers.moved(to: 1)
    while trial.cluster.knownMaster(of: trial.route.slot) != trial.address(of: 1) {
      _ = try? await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(trial.cluster.knownMaster(of: trial.route.slot + 1) == trial.address(of: 0))
    await trial.close()
  }

  @Test(
    .guarantee(.clearsWaitForReplicas),
    .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
  )
  func `the replicas of the master to which a slot was moved acknowledge a clear`() async throws {
    let cluster = try await RedisCluster(masters: 2, replicas: 1)
    let map = try Cluster(cluster.addresses)
    var settings = RedisConnection.Settings(cluster.address)
    settings.cluster = map
    settings.commandTimeout = .seconds(60)
    try map.begin(settings) { _ in }
    let router = Router(settings)
    let names = TierNames(space: "values", schema: "1")
    let tier = Tier(space: "values", schema: "1", node: "a", route: Route(router, for: names.epoch))
    let replicas = Replicas(1, over: router, within: .seconds(60))
    // The check of a connection that is being made does not count.
    for _ in 0..<2 { try await replicas.acknowledge(tier) }
    let former = try await map.master(of: tier.route.slot, within: .seconds(60))
    let isChecked = try router.master(at: former).connection.checked.withLock {
      $0.isChecked(names.schemas)
    }
    #expect(isChecked)
    try await cluster.moveSlot(of: "values", to: 1 - (try cluster.owner(of: "values")))
    // The map is the old one still.
    #expect(map.knownMaster(of: tier.route.slot) == former)
    try await replicas.acknowledge(tier)
    #expect(map.knownMaster(of: tier.route.slot) != former)
    await router.close()
    await map.close()
  }

  @Test(
    .guarantee(.clearsWaitForReplicas),
    .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
  )
  func `replicas that are behind a new master of a slot delay no clear at the former one`()
    async throws
  {
    let cluster = try await RedisCluster(masters: 2, replicas: 1)
    let map = try Cluster(cluster.addresses)
    var settings = RedisConnection.Settings(cluster.address)
    settings.cluster = map
    settings.commandTimeout = .seconds(60)
    try map.begin(settings) { _ in }
    let (caches, clears) = (Router(settings), Router(settings))
    let tiers = try cluster.names(2, at: 0).map { name in
      let names = TierNames(space: name, schema: "1")
      return Tier(space: name, schema: "1", node: "a", route: Route(caches, for: names.epoch))
    }
    let replicas = Replicas(1, over: clears, within: .seconds(60))
    for tier in tiers {
      tier.route.begin(tier)
      _ = try await tier.route.passage()
      for _ in 0..<2 { try await replicas.acknowledge(tier) }
    }
    try await cluster.moveSlot(of: tiers[1].names.space, to: 1)
    cluster.server(3).suspend()
    let late = Task { try await replicas.acknowledge(tiers[1]) }
    let stopwatch = Stopwatch()
    for _ in 0..<3 { try await replicas.acknowledge(tiers[0]) }
    #expect(stopwatch.elapsed < .seconds(50))
    cluster.server(3).resume()
    _ = await late.result
    await caches.close()
    await clears.close()
    await map.close()
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `the map is not waited for beyond the time of the command that needs it`() async throws {
    let isSilent = Guarded(false)
    let servers = Answers { answers, server, _ in
      isSilent.withLock { $0 = true }
      return answers.movedToUnknownHost(of: 1)
    } map: {
      isSilent.withLock { !$0 }
    }
    let trial = try Trial(servers, timeout: .seconds(5))
    // Nothing was sent since the reply of the first server.
    let error = await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(error?.code == "MOVED")
    #expect(await trial.refusals.first(1)[0]?.description.contains("MOVED") == true)
    await trial.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a refusal is in the health although the next attempt is not answered in time`()
    async throws
  {
    let servers = Answers { answers, _, _ in
      answers.commands.count == 1 ? "-CLUSTERDOWN The cluster is down\r\n" : nil
    }
    let trial = try Trial(servers, timeout: .milliseconds(300))
    // On a slow machine, no time is left for another attempt.
    await #expect(throws: (any Error).self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(await trial.refusals.first(1)[0]?.kind == .cluster)
    await trial.close()
  }

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `a command is not sent again if the answer would come too late`() async throws {
    // The second answer comes in the middle of the time, a third one would come at its end.
    let servers = Answers { _, _, _ in
      poll(nil, 0, 1_000)
      return "-CLUSTERDOWN The cluster is down\r\n"
    }
    let trial = try Trial(servers, timeout: .seconds(4))
    await #expect(throws: RedisError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    #expect(trial.received.joined().count <= 2)
    await trial.close()
  }

  /// An owner that needs nearly all of the time of a command.
  private final class SlowOwner: RouteOwner {
    func prepare(_ passage: Passage) async throws {
      while let deadline = passage.deadline, .now < deadline - 100_000_000 { poll(nil, 0, 10) }
    }
  }

  @Test(.guarantee(.redirectedCommandsAreSentOnce))
  func `the time in which a server is prepared is a part of that of the first command`()
    async throws
  {
    let trial = try Trial(Answers { _, _, _ in nil }, timeout: .seconds(6))
    let owner = SlowOwner()
    trial.route.begin(owner)
    let stopwatch = Stopwatch()
    await #expect(throws: RedisConnectionError.self) {
      try await trial.route.send(RedisCommand("GET", ["a"]))
    }
    // With a time of its own, the command would fail after nearly twelve seconds.
    #expect(stopwatch.elapsed < .seconds(11))
    withExtendedLifetime(owner) {}
    await trial.close()
  }

  @Test func `of the servers with a port only one that has no namesake is taken`() throws {
    let servers: [(String, UInt16)] = [("a", 1), ("b", 2), ("c", 2), ("d", 3)]
    let cluster = try Cluster(servers.map { .tcp(host: $0, port: $1) })
    let other = RedisAddress.tcp(host: "d", port: 3)
    #expect(cluster.server(atPort: 1, besides: other) == .tcp(host: "a", port: 1))
    #expect(cluster.server(atPort: 2, besides: other) == nil)
    #expect(
      cluster.server(atPort: 2, besides: .tcp(host: "b", port: 2)) == .tcp(host: "c", port: 2)
    )
    #expect(cluster.server(atPort: 3, besides: other) == nil)
  }
}
