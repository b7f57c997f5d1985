import Foundation
import Plexus
import PlexusInspector
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .serialized,
  .enabled(
    if: Browser.executable != nil,
    "chromium is not installed, and PLEXUS_CHROMIUM is not set"
  )
)
struct `The page of an inspector in a browser` {
  private struct LoggedIn: Event { let name: String }
  private struct LoggedOut: Event {}

  /// Returns an expression for the text of the page.
  private let text = "document.body.innerText"

  private func number(_ name: String) -> String {
    """
    [...document.querySelectorAll(".numbers div")].find((node) => node.firstChild.textContent === "\(name)")
      ?.lastChild.textContent
    """
  }

  private func rows(_ table: String) -> String {
    "[...document.querySelectorAll('table[aria-label=\"\(table)\"] tbody tr')]"
  }

  /// Checks that the page has fetched nothing from elsewhere, and that the console is empty.
  private func expectQuiet(_ browser: Browser, _ inspector: Inspector) {
    #expect(browser.complaints == [])
    let own = inspector.url.absoluteString
    let others = browser.addresses.filter {
      !$0.hasPrefix(own) && $0 != "data:," && $0 != "about:blank"
    }
    #expect(others == [] && browser.addresses.contains { $0.hasPrefix("\(own)stream") })
  }

  @Test func `its numbers are those of the library after a load`() async throws {
    let map = MultiplexerMap<Int, Int>(policy: CachePolicy(timeToLive: .seconds(600))) { key in
      if key == 99 { throw Undecodable() }
      return key
    }
    let inspector = try await Inspector()
    inspector.add(map, named: "numbers")
    let browser = try await Browser()
    try await browser.visit(inspector.url, fragment: "#source=numbers")
    try await browser.wait(until: "\(number("Requests")) === '0'")
    try await withThrowingTaskGroup { group in
      for index in 0..<1_500 { group.addTask { _ = try await map.request(index % 40) } }
      try await group.waitForAll()
    }
    _ = try? await map.request(99)
    let statistics = map.statistics
    let requests = statistics.hits + statistics.staleHits + statistics.joins + statistics.misses
    try await browser.wait(until: "\(number("Requests")) === '1,501'")
    #expect(requests == 1_501)
    for (name, count) in [
      ("Hits", statistics.hits), ("Joins", statistics.joins), ("Misses", statistics.misses),
      ("Fetches", statistics.fetches), ("Failures", 1), ("Stale hits", 0),
    ] {
      // A frame can have been made while the last fetch was running.
      try await browser.wait(until: "\(number(name)).replace(',', '') === '\(count)'")
    }
    try await browser.wait(
      until: "\(rows("Entries")).length === 40 || \(rows("Entries")).length === 41"
    )
    try await browser.wait(
      until: "document.querySelectorAll('.plot svg .curve[d^=M]').length === 5"
    )
    expectQuiet(browser, inspector)
  }

  @Test func `an event appears, and the filter filters`() async throws {
    let bus = EventBus()
    let inspector = try await Inspector(showsValues: true)
    inspector.add(bus, named: "events")
    let token = bus.observe(LoggedIn.self) { _ in }
    let browser = try await Browser()
    try await browser.visit(inspector.url)
    try await browser.wait(until: "document.querySelectorAll('[role=tab]').length === 2")
    _ = try await browser.value(of: "document.querySelectorAll('[role=tab]')[1].click()")
    try await browser.wait(until: "\(text).includes('No post yet')")
    bus.post(LoggedIn(name: "<img src=x onerror=alert(1)>"))
    bus.post(LoggedOut())
    try await browser.wait(until: "\(rows("Posts")).length === 2")
    try await browser.wait(until: "\(text).includes('1 of 1 handled')")
    #expect(try await browser.value(of: "document.images.length") as? Int == 0)
    #expect(try await browser.value(of: "\(text).includes('<img src=x')") as? Bool == true)
    _ = try await browser.value(
      of: """
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
        document.activeElement.value = "loggedout";
        document.activeElement.dispatchEvent(new Event("input", { bubbles: true }));
        """
    )
    try await browser.wait(until: "\(rows("Posts")).length === 1")
    #expect(
      try await browser.value(of: "location.hash") as? String == "#source=events&type=loggedout"
    )
    // The address brings the filter back.
    _ = try await browser.value(of: "location.reload()")
    try await browser.wait(
      until:
        "\(rows("Posts")).length === 1 && document.querySelector('.search').value === 'loggedout'"
    )
    expectQuiet(browser, inspector)
    token.cancel()
  }

  @Test func `entries are searched, sorted and selected, by keyboard as well`() async throws {
    let map = MultiplexerMap<String, Int> { $0.utf8.count }
    map.store(Dictionary(uniqueKeysWithValues: (0..<1_200).map { ("key \($0 + 1_000)", $0) }))
    let inspector = try await Inspector(showsValues: true)
    inspector.add(map, named: "map")
    map.store(98, for: "key 1098")
    let browser = try await Browser()
    try await browser.visit(inspector.url, fragment: "#source=map")
    try await browser.wait(until: "\(rows("Entries")).length === 1000")
    _ = try await browser.value(
      of:
        "[...document.querySelectorAll('button')].find((node) => node.textContent === 'Next rows').click()"
    )
    try await browser.wait(until: "\(rows("Entries"))[0].textContent.includes('key 2000')")
    #expect(try await browser.value(of: "\(rows("Entries")).length") as? Int == 200)
    _ = try await browser.value(
      of: """
        const field = document.querySelector(".search"); field.value = "KEY 10"; field.dispatchEvent(new Event("input"));
        """
    )
    try await browser.wait(until: "\(rows("Entries")).length === 100")
    _ = try await browser.value(
      of:
        "[...document.querySelectorAll('th button')].find((node) => node.textContent.startsWith('Key')).click()"
    )
    try await browser.wait(until: "\(rows("Entries"))[0].textContent.includes('key 1099')")
    _ = try await browser.value(
      of: """
        \(rows("Entries"))[0].focus();
        for (const key of ["ArrowDown", "Enter"]) {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        }
        """
    )
    try await browser.wait(
      until: "\(text).includes('History, newest first') && \(text).includes('by a caller')"
    )
    #expect(try await browser.value(of: "\(rows("Entries"))[1].ariaSelected") as? String == "true")
    expectQuiet(browser, inspector)
  }

  @Test(.guarantee(.inspectorSamplesForOpenPages))
  func `a page in the background is sent nothing, and continues when it is visible`()
    async throws
  {
    let calls = Log<Int>()
    let inspector = try await Inspector()
    inspector.add(named: "text") {
      calls.append(1)
      return "call \(calls.count)"
    }
    let browser = try await Browser()
    try await browser.visit(inspector.url, fragment: "#source=text")
    try await browser.wait(until: "\(text).includes('call 3')")
    let hide = { (isHidden: Bool) in
      """
      Object.defineProperty(document, "hidden", { configurable: true, get: () => \(isHidden) });
      document.dispatchEvent(new Event("visibilitychange"));
      """
    }
    _ = try await browser.value(of: hide(true))
    try await browser.wait(until: "\(text).includes('Paused in the background')")
    // The four places are free again once the page has left.
    var pages: [TestPage] = []
    while pages.count < 4 { if let page = try? await TestPage(inspector) { pages.append(page) } }
    _ = try await pages[0].frame()
    pages.removeAll()
    _ = try await browser.value(of: hide(false))
    let count = calls.count
    try await browser.wait(until: "\(text).includes('Live') && !\(text).includes('call \(count)')")
    expectQuiet(browser, inspector)
  }

  @Test func `a page says that its process is gone, and continues when it is back`() async throws {
    var inspector = try await Inspector()
    let browser = try await Browser()
    let port = Int(inspector.port)
    await inspector.stop()
    // With a fixed port, the address stays the same.
    inspector = try await Inspector(port: port)
    let address = inspector.url
    inspector.add(named: "first") { "" }
    try await browser.visit(address)
    try await browser.wait(until: "\(text).includes('first')")
    await inspector.stop()
    try await browser.wait(until: "\(text).includes('The process does not answer')")
    inspector = try await Inspector(port: port)
    inspector.add(named: "second") { "" }
    try await browser.wait(
      until: "\(text).includes('second') && \(text).includes('The process was restarted')"
    )
    #expect(inspector.url == address)
    await inspector.stop()
  }

  @Test(arguments: [(400, false), (400, true), (1_600, false), (1_600, true)])
  func `it fits its window in both color schemes`(width: Int, isDark: Bool) async throws {
    let map = MultiplexerMap<Int, Profile> { Profile(name: "A name that is not short, \($0)") }
    let (bus, store) = (EventBus(), Store<Profile, Int>(Profile(name: "Ada")) { $0.visits += $1 })
    let inspector = try await Inspector(showsValues: true)
    inspector.add(map, named: "a cache with a name that is long enough to be cut somewhere")
    inspector.add(bus, named: "events")
    inspector.add(store, named: "store")
    inspector.add(named: "text") { String(repeating: "word ", count: 200) }
    for key in 0..<50 { _ = try await map.request(key) }
    bus.post(LoggedIn(name: "Ada"))
    store.dispatch(1)
    let browser = try await Browser(width: width, height: 900, isDark: isDark)
    try await browser.visit(inspector.url)
    try await browser.wait(until: "document.querySelectorAll('[role=tab]').length === 5")
    for index in 0..<5 {
      _ = try await browser.value(of: "document.querySelectorAll('[role=tab]')[\(index)].click()")
      try await browser.wait(
        until: "document.querySelectorAll('[role=tab]')[\(index)].ariaSelected === 'true'"
      )
      try await browser.wait(until: "document.querySelector('main').innerText.length > 20")
      let isTooWide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
      #expect(try await browser.value(of: isTooWide) as? Bool == false, "tab \(index)")
    }
    let color =
      try await browser.value(of: "getComputedStyle(document.body).backgroundColor") as? String
    #expect(color == (isDark ? "rgb(18, 21, 26)" : "rgb(246, 247, 249)"))
    expectQuiet(browser, inspector)
  }
}

extension `The page of an inspector in a browser` {
  private static let picture = ProcessInfo.processInfo.environment["PLEXUS_PICTURE"]

  @Test(.enabled(if: picture != nil, "PLEXUS_PICTURE is not set"))
  func `the picture of the page is drawn from the demo`() async throws {
    let picture = try #require(Self.picture)
    let demo = try Demo()
    let browser = try await Browser(width: 1_280, height: 800)
    try await browser.visit(try await demo.address(), fragment: "#source=weather&key=JFK%2F7")
    for seconds in [25, 50] {
      try await browser.wait(until: "performance.now() > \(seconds)000")
    }
    try await browser.picture().write(to: URL(filePath: picture))
    #expect(browser.complaints == [])
  }
}

/// The demo as a child process, which is ended with the last reference.
private final class Demo: Sendable {
  private let process = Process()
  private let output = Pipe()

  init() throws {
    let folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    process.executableURL = folder.appending(path: "DepartureBoard")
    process.arguments = ["--plain", "--no-cache", "--inspect", "--latency", "400"]
    process.standardOutput = output
    try ProcessThread.run { [process] in try process.run() }
  }

  deinit {
    process.terminate()
  }

  /// Returns the address that it prints in its first line, and discards the other lines.
  func address() async throws -> URL {
    let line = try await blocking { [output] in
      var line = Data()
      while let byte = try output.fileHandleForReading.read(upToCount: 1), byte != Data("\n".utf8) {
        line += byte
      }
      return String(decoding: line, as: UTF8.self)
    }
    Thread.detachNewThread { [output] in
      while let piece = try? output.fileHandleForReading.read(upToCount: 65_536), !piece.isEmpty {}
    }
    return try #require(URL(string: String(line.split(separator: " ").last ?? "")), "\(line)")
  }
}
