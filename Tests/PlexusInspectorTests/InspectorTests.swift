import Foundation
import Plexus
import PlexusInspector
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `An inspector` {
  @Test func `the numbers of a cache are those of its statistics`() async throws {
    let map = MultiplexerMap<Int, Int> { $0 }
    let inspector = try await Inspector()
    inspector.add(map, named: "numbers")
    for key in [1, 2, 3, 1, 2, 1] { _ = try await map.request(key) }
    let frame = try await TestPage(inspector).frame()
    let source = try #require(frame.source("numbers"))
    #expect(source.kind == "cache")
    #expect(source.number("misses") == 3 && source.number("hits") == 3)
    #expect(source.number("fetches") == map.statistics.fetches)
    #expect(source.number("count") == map.count)
  }

  @Test func `a fetch in flight is shown with its key and its callers`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<String, Int> { _ in
      try await gate.wait()
      return 1
    }
    let inspector = try await Inspector()
    inspector.add(map, named: "slow")
    let callers = (0..<3).map { _ in Task { try await map.request("Ada") } }
    await gate.arrivals(1)
    let page = try await TestPage.showing("slow", of: inspector)
    let frame = try await page.frame { frame in
      frame.list("flights").first?["callers"] as? Int == 3
    }
    let flight = frame.list("flights")[0]
    #expect(flight["key"] as? String == "Ada" && flight["waiting"] as? Bool == false)
    gate.open()
    for caller in callers { _ = try await caller.value }
    _ = try await page.frame { $0.list("flights").isEmpty }
  }

  @Test func `the history of a key has what happened to it, and the cause of a removal`()
    async throws
  {
    let map = MultiplexerMap<String, Int> { key in
      if key == "bad" { throw Undecodable() }
      return 1
    }
    let inspector = try await Inspector()
    inspector.add(map, named: "map")
    _ = try await map.request("Ada")
    _ = try? await map.request("bad")
    map.clearMemory("Ada")
    let page = try await TestPage.showing("map", of: inspector)
    let frame = try await page.frame { $0.list("events").count >= 3 }
    #expect(frame.list("events").map { $0["what"] as? String } == ["fetched", "failed", "removed"])
    let id = try #require(frame.source("map")?.id)
    let answer = try await inspector.answer("entry?source=\(id)&key=Ada")
    let events = try #require(answer["events"] as? [[String: Any]])
    #expect(events.map { $0["what"] as? String } == ["fetched", "removed"])
    #expect(events.last?["detail"] as? String == "memory was cleared")
    #expect(answer["row"] is NSNull)
  }

  @Test func `the history of a key has the requests that joined its fetch`() async throws {
    let gate = Gate()
    let map = MultiplexerMap<String, Int> { _ in
      try await gate.wait()
      return 1
    }
    let inspector = try await Inspector()
    inspector.add(map, named: "map")
    let callers = (0..<3).map { _ in Task { try await map.request("Ada") } }
    let page = try await TestPage.showing("map", of: inspector)
    var frame = try await page.frame { $0.list("flights").first?["callers"] as? Int == 3 }
    gate.open()
    for caller in callers { _ = try await caller.value }
    frame = try await page.frame { $0.list("events").count == 2 }
    #expect(frame.list("events").map { $0["what"] as? String } == ["joined", "fetched"])
    let detail = frame.list("events")[0]["detail"] as? String
    #expect(detail == "2 other requests waited for the fetch")
  }

  @Test func `the number of posts is right however many a page is not sent`() async throws {
    struct Tick: Event {}
    let bus = EventBus()
    let inspector = try await Inspector()
    inspector.add(bus, named: "events")
    for _ in 0..<5_000 { bus.post(Tick()) }
    let page = try await TestPage.showing("events", of: inspector)
    let frame = try await page.frame { $0.source("events")?.number("posts") == 5_000 }
    #expect(frame.list("posts").last?["number"] as? Int == 5_000)
    #expect(frame.list("posts").count <= 200)
  }

  @Test func `an event appears with its handlers, and its outcome once they have finished`()
    async throws
  {
    struct LoggedIn: Event {
      let name: String
      var persistence: EventPersistence { name == "Bob" ? .persistent(.neverClear) : .none }
    }
    let bus = EventBus()
    let gate = Gate()
    let token = bus.observe(LoggedIn.self) { _ in try? await gate.wait() }
    let inspector = try await Inspector()
    inspector.add(bus, named: "events")
    bus.post(LoggedIn(name: "Ada"))
    bus.post(LoggedIn(name: "Bob"), scope: "left")
    let page = try await TestPage.showing("events", of: inspector)
    var frame = try await page.frame { !$0.list("posts").isEmpty }
    let post = frame.list("posts")[0]
    #expect(post["type"] as? String == "LoggedIn" && post["subscribers"] as? Int == 1)
    #expect(post["outcome"] is NSNull && post["scope"] is NSNull)
    #expect(frame.list("posts").count == 2 && frame.list("posts")[1]["retained"] as? Bool == true)
    let channels = frame.list("channels")
    #expect(channels.map { $0["pending"] as? Int }.reduce(0) { $0 + ($1 ?? 0) } == 1)
    #expect(channels.contains { $0["handlers"] as? Int == 1 })
    gate.open()
    frame = try await page.frame { !$0.list("posts").isEmpty }
    #expect(frame.list("posts").map { $0["number"] as? Int } == [1])
    #expect(frame.list("posts")[0]["outcome"] as? String == "1 of 1 handled")
    token.cancel()
  }

  @Test func `an action of a store is shown with the parts of the state that it changed`()
    async throws
  {
    struct Board: Sendable, Equatable {
      var rows: [Int: Profile] = [7: Profile(name: "Ada")]
      var title = "today"
    }
    enum Change: Sendable {
      case visit(Int)
      case rename(String)
    }
    let store = Store<Board, Change>(Board()) { state, action in
      switch action {
      case .visit(let id): state.rows[id]?.visits += 1
      case .rename(let title): state.title = title
      }
    }
    let inspector = try await Inspector(showsValues: true)
    inspector.add(store, named: "board")
    store.dispatch(.visit(7))
    store.dispatch(.rename("tomorrow"))
    let page = try await TestPage.showing("board", of: inspector)
    let frame = try await page.frame { $0.list("actions").count == 2 }
    #expect(
      frame.list("actions").map { $0["action"] as? String } == ["visit(7)", "rename(\"tomorrow\")"]
    )
    let id = try #require(frame.source("board")?.id)
    let answer = try await inspector.answer("action?source=\(id)&number=1")
    let changes = try #require(answer["changes"] as? [[String: Any]])
    #expect(changes.map { $0["path"] as? String } == ["rows[7].visits"])
    #expect(changes[0]["before"] as? String == "0" && changes[0]["after"] as? String == "1")
  }

  @Test func `the subscribers of any broadcaster are shown with what waits for them`()
    async throws
  {
    let messenger = Messenger<Int>()
    let inspector = try await Inspector()
    inspector.add(messenger, named: "messages")
    let stream = messenger.subscribe(bufferingPolicy: .bufferingNewest(2))
    for number in 0..<5 { messenger.send(number) }
    let page = try await TestPage.showing("messages", of: inspector)
    let frame = try await page.frame { !$0.list("subscribers").isEmpty }
    let subscriber = frame.list("subscribers")[0]
    #expect(subscriber["kind"] as? String == "stream" && subscriber["buffered"] as? Int == 2)
    #expect(subscriber["dropped"] as? Int == 3)
    #expect(frame.source("messages")?.number("sent") == 5)
    withExtendedLifetime(stream) {}
  }

  @Test func `a text is requested while a page shows it, and a slow one delays no other source`()
    async throws
  {
    let gate = Gate()
    let calls = Log<String>()
    let inspector = try await Inspector()
    inspector.add(named: "slow") {
      calls.append("slow")
      try? await gate.wait()
      return "ready"
    }
    inspector.add(named: "other") {
      calls.append("other")
      return "two lines\nof <b>text</b>"
    }
    #expect(calls.entries.isEmpty)
    let slow = try await TestPage.showing("slow", of: inspector)
    let other = try await TestPage.showing("other", of: inspector)
    let frame = try await other.frame { $0.details["text"] is String }
    #expect(frame.details["text"] as? String == "two lines\nof <b>text</b>")
    #expect(try await slow.frame().details["text"] is NSNull)
    gate.open()
    let ready = try await slow.frame { $0.details["text"] is String }
    #expect(ready.details["text"] as? String == "ready")
  }

  @Test func `a name that is in use gets a number, and an ended source is replaced`() async throws {
    let inspector = try await Inspector()
    let first = Messenger<Int>()
    var second: Messenger<Int>? = Messenger()
    inspector.add(first, named: "news")
    if let second { inspector.add(second, named: "news") }
    let page = try await TestPage(inspector)
    #expect(try await page.frame().names == ["news", "news 2"])
    second = nil
    _ = try await page.frame { $0.source("news 2")?.hasEnded == true }
    inspector.add(named: "news 2") { "a text" }
    _ = try await page.frame { $0.source("news 2")?.kind == "text" }
    inspector.remove(named: "news 2")
    _ = try await page.frame { $0.names == ["news"] }
    withExtendedLifetime(first) {}
  }

  @Test(.guarantee(.inspectorKeepsNothingAlive))
  func `an inspector keeps no source alive`() async throws {
    let inspector = try await Inspector()
    weak var map: MultiplexerMap<Int, Int>?
    weak var bus: EventBus?
    weak var store: Store<Int, Int>?
    weak var value: CurrentValue<Int>?
    weak var single: Multiplexer<Int>?
    do {
      let sources = (
        MultiplexerMap<Int, Int> { $0 }, EventBus(), Store<Int, Int>(0) { $0 += $1 },
        CurrentValue(1), Multiplexer<Int> { 1 }
      )
      (map, bus, store, value, single) = sources
      inspector.add(sources.0, named: "map")
      inspector.add(sources.1, named: "bus")
      inspector.add(sources.2, named: "store")
      inspector.add(sources.3, named: "value")
      inspector.add(sources.4, named: "single")
      let frame = try await TestPage(inspector).frame()
      #expect(frame.names.allSatisfy { frame.source($0)?.hasEnded == false })
    }
    let frame = try await TestPage(inspector).frame { frame in
      frame.names.allSatisfy { frame.source($0)?.hasEnded == true }
    }
    #expect(frame.names == ["map", "bus", "store", "value", "single"])
    #expect(map == nil && bus == nil && store == nil && value == nil && single == nil)
  }

  @Test(.guarantee(.inspectorKeepsNothingAlive))
  func `stopping an inspector frees its port, ends its pages and releases closures`()
    async throws
  {
    let inspector = try await Inspector()
    weak var owner: Owner?
    do {
      let object = Owner()
      owner = object
      inspector.add(named: "owner") { "\(object)" }
    }
    #expect(owner != nil)
    let page = try await TestPage(inspector)
    _ = try await page.frame()
    await inspector.stop()
    try? await page.end()
    #expect(owner == nil)
    #expect(RawClient.canBind(to: inspector.port))
    inspector.add(named: "late") { "late" }
    await inspector.stop()
  }

  @Test func `an inspector says which port it cannot use`() async throws {
    await #expect(throws: InspectorError.invalidPort(70_000)) { try await Inspector(port: 70_000) }
    await #expect(throws: InspectorError.invalidPort(-1)) { try await Inspector(port: -1) }
    let inspector = try await Inspector()
    let port = Int(inspector.port)
    await #expect(throws: InspectorError.portInUse(port)) { try await Inspector(port: port) }
    #expect("\(InspectorError.portInUse(80))".contains("Port 80 is in use"))
  }
}
