import Foundation
import Plexus
import PlexusInspector
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The entries on the page of an inspector` {
  @Test func `an entry has its state, age, time left, tags and cost`() async throws {
    let clock = ManualClock()
    let tagging = { @Sendable (key: String, _: Int) in [CacheTag("tag \(key)")] }
    let map = MultiplexerMap<String, Int>(
      policy: CachePolicy(timeToLive: .seconds(60), failureTimeToLive: .seconds(30)),
      capacity: .cost(1_000) { $0 },
      valueTagging: tagging,
      clock: clock
    ) { key in
      if key == "bad" { throw Undecodable() }
      return key.utf8.count
    }
    let inspector = try await Inspector()
    inspector.add(map, named: "map")
    _ = try await map.request("old")
    clock.advance(by: .seconds(50))
    _ = try await map.request("fresh")
    _ = try? await map.request("bad")
    clock.advance(by: .seconds(20))
    let answer = try await inspector.entries(of: "map", ["sort": "state"])
    let rows = try #require(answer["rows"] as? [[String: Any]])
    #expect(rows.map { $0["key"] as? String } == ["fresh", "old", "bad"])
    #expect(rows.map { $0["state"] as? String } == ["fresh", "stale", "failed"])
    #expect(rows[0]["age"] as? Double == 20 && rows[0]["left"] as? Double == 40)
    #expect(rows[1]["age"] as? Double == 70 && rows[1]["left"] is NSNull)
    #expect(rows[0]["tags"] as? [String] == ["tag fresh"])
    #expect(rows[0]["cost"] as? Int == 5)
    #expect(rows[2]["error"] as? String == "Undecodable")
    let stale = try await inspector.entries(of: "map", ["state": "stale"])
    #expect(stale.column("key") == ["old"])
  }

  @Test func `entries are searched, sorted, and shown in windows of a thousand`() async throws {
    let map = MultiplexerMap<Int, Int> { $0 }
    map.store(Dictionary(uniqueKeysWithValues: (0..<2_500).map { ($0, $0) }))
    let inspector = try await Inspector()
    inspector.add(map, named: "map") { key in "User \(10_000 + key)" }
    let found = try await inspector.entries(of: "map", ["search": "uSER%201123"])
    #expect(found.column("key") == (11230...11239).map { "User \($0)" })
    var keys: [String] = []
    var start: [String: Any]?
    repeat {
      let key = (start?["key"] as? String ?? "").replacing(" ", with: "%20")
      let number = start?["number"] as? String
      let position: KeyValuePairs =
        number == nil
        ? ["descending": "1"]
        : [
          "descending": "1", "number": number ?? "", "after": key,
          "hash": start?["hash"] as? String ?? "",
        ]
      let window = try await inspector.entries(of: "map", position)
      #expect(window["matches"] as? Int == (start == nil ? 2_500 : window["matches"] as? Int))
      #expect(window["isComplete"] as? Bool == true)
      keys += window.column("key")
      start = window["hasMore"] as? Bool == true ? window["last"] as? [String: Any] : nil
    } while start != nil
    #expect(keys == (10_000..<12_500).reversed().map { "User \($0)" })
  }

  @Test func `keys with the same text have a row and an answer each`() async throws {
    let map = MultiplexerMap<Int, Int> { $0 }
    map.store(Dictionary(uniqueKeysWithValues: (0..<1_500).map { ($0, $0) }))
    let inspector = try await Inspector(showsValues: true)
    inspector.add(map, named: "map") { _ in "session" }
    for order in ["key", "state"] {
      let first = try await inspector.entries(of: "map", ["sort": order])
      let second = try await inspector.window(after: first, of: "map", ["sort": order])
      #expect(first["hasMore"] as? Bool == true && second["hasMore"] as? Bool == false)
      #expect(Set(first.column("value") + second.column("value")).count == 1_500)
      #expect(Set(first.column("hash") + second.column("hash")).count == 1_500)
    }
    let last = try await inspector.entries(of: "map", ["descending": "1"])
    let id = try #require(try await TestPage(inspector).frame().source("map")?.id)
    for (hash, value) in zip(last.column("hash"), last.column("value")).prefix(5) {
      let entry = try await inspector.answer("entry?source=\(id)&key=session&hash=\(hash)")
      #expect((entry["row"] as? [String: Any])?["value"] as? String == value)
    }
  }

  @Test(arguments: [("k", 1_002), ("💡", 3)] as [(Character, Int)])
  func `the window after a very long key, and its history, can be requested`(
    character: Character,
    count: Int
  ) async throws {
    let map = MultiplexerMap<String, Int> { $0.utf8.count }
    let inspector = try await Inspector()
    inspector.add(map, named: "map")
    let long = String(repeating: character, count: 9_000)
    for number in 0..<count { _ = try await map.request("\(long)\(number)") }
    let search = String(repeating: character, count: 100).escaped
    let first = try await inspector.entries(of: "map")
    let second = try await inspector.window(after: first, of: "map", ["search": search])
    #expect(first.column("key").count == min(1_000, count))
    #expect(second.column("key").count == max(0, count - 1_000))
    let page = try await TestPage.showing("map", of: inspector)
    let id = try #require(try await page.frame { !$0.list("events").isEmpty }.source("map")?.id)
    let row = try #require((first["rows"] as? [[String: Any]])?.first)
    let (key, hash) = ("\(row["key"] ?? "")", "\(row["hash"] ?? "")")
    let entry = try await inspector.answer(
      "entry?source=\(id)&key=\(key.escaped)&hash=\(hash)"
    )
    #expect((entry["row"] as? [String: Any])?["hash"] as? String == hash)
    #expect((entry["events"] as? [Any])?.count ?? 0 <= 1)
    // A bookmark has no hash; one text can be that of several keys.
    let marked = try await inspector.answer("entry?source=\(id)&key=\(key.escaped)")
    #expect((marked["row"] as? [String: Any])?["key"] as? String == key)
    map.clearMemory()
    let removed = try await inspector.answer("entry?source=\(id)&key=\(key.escaped)")
    let events = try #require(removed["events"] as? [[String: Any]])
    #expect(removed["row"] is NSNull && events.contains { $0["what"] as? String == "fetched" })
  }

  @Test func `keys are shown as they are described, also those of fetches and histories`()
    async throws
  {
    let gate = Gate()
    let map = MultiplexerMap<String, Int> { key in
      if key == "waits@example.org" { try await gate.wait() }
      return 1
    }
    let inspector = try await Inspector(showsValues: true)
    inspector.add(map, named: "map") { key in "user \(key.utf8.count)" }
    _ = try await map.request("ada@example.org")
    let waiting = Task { try await map.request("waits@example.org") }
    await gate.arrivals(1)
    let page = try await TestPage.showing("map", of: inspector)
    let frame = try await page.frame { !$0.list("events").isEmpty && !$0.list("flights").isEmpty }
    #expect(!frame.text.contains("example.org"))
    #expect(frame.list("flights")[0]["key"] as? String == "user 17")
    let id = try #require(frame.source("map")?.id)
    let client = try await inspector.request("entry?source=\(id)&key=user%2015")
    let body = try await client.response().body
    #expect(body.contains("fetched") && !body.contains("example.org"))
    gate.open()
    _ = try await waiting.value
  }

  @Test(.guarantee(.inspectorHidesValues))
  func `values are shown only on request, otherwise their types and sizes`() async throws {
    struct LoggedIn: Event { let name: String }
    let map = MultiplexerMap<Int, Profile> { Profile(name: "secret \($0)") }
    let bus = EventBus()
    let store = Store<Profile, String>(Profile(name: "secret")) { state, action in
      state.name = action
    }
    for showsValues in [false, true] {
      let inspector = try await Inspector(showsValues: showsValues)
      inspector.add(map, named: "map")
      inspector.add(bus, named: "bus")
      inspector.add(store, named: "store")
      _ = try await map.request(1)
      bus.post(LoggedIn(name: "secret event"), scope: EventScope("secret scope"))
      store.dispatch("secret action")
      store.dispatch("secret end")
      var texts = ""
      for (name, list) in [("bus", "posts"), ("store", "actions")] {
        let page = try await TestPage.showing(name, of: inspector)
        texts += try await page.frame { !$0.list(list).isEmpty }.text
      }
      let id = try #require(try await TestPage(inspector).frame().source("map")?.id)
      let store = id + 2
      for path in [
        "entries?source=\(id)", "entry?source=\(id)&key=1", "action?source=\(store)&number=2",
      ] {
        texts += try await inspector.request(path).response().body
      }
      #expect(texts.contains("secret") == showsValues)
      #expect(texts.contains("Profile, 24 bytes") == !showsValues)
      #expect(texts.contains("\"LoggedIn\"") && texts.contains("\"name\""))
    }
  }

  @Test func `a single value is shown as a cache with one entry and its history`() async throws {
    let single = Multiplexer<Int>(id: "answer") { 7 }
    let inspector = try await Inspector(showsValues: true)
    inspector.add(single, named: "single")
    _ = try await single.request()
    #expect(try await inspector.entries(of: "single").column("value") == ["7"])
    let page = try await TestPage.showing("single", of: inspector)
    let frame = try await page.frame { !$0.list("events").isEmpty }
    let source = try #require(frame.source("single"))
    #expect(source.number("misses") == 1 && source.number("count") == 1)
    let entry = try await inspector.answer("entry?source=\(source.id)&key=the%20value")
    let events = try #require(entry["events"] as? [[String: Any]])
    #expect(events.map { $0["what"] as? String } == ["fetched"])
  }

  @Test func `loaders are shown with their images, decodings and downloads`() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "inspector-\(UUID().uuidString)", directoryHint: .isDirectory)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let files = try ["one.txt", "two.txt"].map { name in
      let file = folder.appending(path: name)
      try Data(name.utf8).write(to: file)
      return file
    }
    let gate = Gate()
    let media = MediaLoader(directory: folder.appending(path: "media"), retry: .never)
    let images = ImageLoader<Int>(media: media, capacity: .cost(100) { $0 }) { data in
      if data.count == 7, data.first == UInt8(ascii: "t") { try await gate.wait() }
      return data.count
    }
    let inspector = try await Inspector()
    inspector.add(images, named: "images") { URL(string: $0)?.lastPathComponent ?? "no file" }
    inspector.add(media, named: "files")
    #expect(try await images.request(files[0]) == 7)
    let waiting = Task { try await images.request(files[1]) }
    await gate.arrivals(1)
    let page = try await TestPage.showing("images", of: inspector)
    let frame = try await page.frame { !$0.list("flights").isEmpty }
    #expect(frame.source("images")?.kind == "loader" && frame.source("files")?.kind == "loader")
    #expect(frame.list("flights").map { $0["key"] as? String } == ["two.txt"])
    #expect(frame.source("images")?.number("misses") == 2)
    let entries = try await inspector.entries(of: "images")
    #expect(entries.column("key") == ["one.txt"] && entries.column("cost") == ["7"])
    gate.open()
    #expect(try await waiting.value == 7)
  }
}
