import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A cache of HTTP and a reference that is written from RFC 9111, sections 3 and 4, in the same random histories.
///
/// Requests of two accounts and of several variants are answered in any order, with any date and directives; attempts
/// fail, accounts change meanwhile, and changes invalidate.
@Suite(.fewAtOnce)
struct `A cache of HTTP beside a model` {
  @Test(.guarantee(.httpAgreesWithRFC9111))
  func `a cache of HTTP answers as RFC 9111 says in two thousand histories`() async throws {
    for seed in 0..<Effort.count(2_000) {
      let history = HTTPHistory(seed: UInt64(seed))
      do {
        try await history.run()
      } catch let error as Wrong {
        Issue.record("seed \(seed): \(error.what)\n\(history.lines.joined(separator: "\n"))")
        return
      }
    }
  }
}

/// One history, with the cache and the reference.
private final class HTTPHistory {
  private var random: SeededRandom
  private(set) var lines: [String] = []

  private let clock = ManualClock()
  private let jar = HTTPCookieJar()
  private let transport = HeldTransport()
  private let cache: HTTPCache<String>
  private let rules: HTTPRules
  private let url = URL(string: "https://a.example/value")
  private var model = HTTPModel()

  private var account = ""
  private var serial = 0
  private var events = 0
  /// Whether an answer arrived after a change: its entry can be shared, and has no value.
  private var hasLateAnswers = false
  /// 2027-01-15T08:30Z.
  private static let start = 1_800_001_800

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    var rules = HTTPRules.patient
    rules.cookies = jar
    self.rules = rules
    var policy = CachePolicy.http
    policy.retry = .exponential(attempts: 2, base: .seconds(1), cap: .seconds(1), jitter: 0)
    let (clock, begin) = (self.clock, self.clock.now)
    cache = HTTPCache(
      policy: policy,
      transport: transport,
      rules: rules,
      clock: clock,
      now: {
        let seconds = begin.duration(to: clock.now).components.seconds
        return Date(timeIntervalSince1970: Double(Self.start) + Double(seconds))
      },
      decode: { String(decoding: $0.body, as: UTF8.self) }
    )
    beginning = begin
  }

  private let beginning: ManualClock.Instant

  private var now: Int {
    Self.start + Int(beginning.duration(to: clock.now).components.seconds)
  }

  func run() async throws {
    for _ in 0..<14 {
      switch random.below(16) {
      case 0..<9: try await request()
      case 9..<11: try await overlap()
      case 11: try await change()
      case 12..<14:
        let seconds = 1 + random.below(6)
        lines.append("\(seconds) s pass")
        clock.advance(by: .seconds(seconds))
      default: try await signIn()
      }
    }
  }

  // MARK: - Steps

  /// A request and its answer.
  private func request() async throws {
    try await answer(begin())
  }

  /// Two requests of which the second one is answered while the first one waits.
  private func overlap() async throws {
    let first = try await begin()
    guard first.sent != nil else { return try await answer(first) }
    // The second one could wait for the first one's answer if that renews a value for both.
    let isAlone = model.best(first.asked) == nil && !hasLateAnswers
    if !isAlone || random.below(3) == 0 { try await signIn(other: first.asked.account) }
    if random.below(3) == 0 { try await change() } else { try await answer(begin()) }
    try await answer(first)
  }

  private func signIn(other than: String? = nil) async throws {
    let accounts: [String] = ["", "a", "b"].filter { $0 != than }
    account = accounts[random.below(accounts.count)]
    lines.append("now account '\(account)'")
    // Not emptied: attempts that wait keep their cookies.
    let field = "s=\(account); Path=/" + (account.isEmpty ? "; Max-Age=0" : "")
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, headers: ["Set-Cookie": field], "")
    }
    guard let login = URL(string: "https://a.example/login") else { return }
    let fetcher = HTTPFetcher(login, transport: transport, rules: rules) { $0 }
    _ = try await fetcher.fetch(FetchContext(previousValue: nil))
  }

  private struct Pending {
    let asked: HTTPModel.Asked
    let task: Task<String, any Error>
    var sent: HeldTransport.Exchange?
    /// When it was sent.
    var time = 0
    /// The number of changes that there had been when its fetch began.
    var era = 0
  }

  private func begin() async throws -> Pending {
    guard let url else { throw Wrong(what: "no URL") }
    serial += 1
    var request = URLRequest(url: url)
    var asked = HTTPModel.Asked(account: account)
    let choices: [(String, [String?])] = [
      ("accept-language", ["en", "de", nil]), ("x-kind", ["1", "2"]),
    ]
    for (name, values) in choices {
      asked.fields[name] = values[random.below(values.count)]
    }
    for (name, value) in asked.fields { request.setValue(value, forHTTPHeaderField: name) }
    // No two first requests share an answer.
    request.setValue("\(serial)", forHTTPHeaderField: "X-Serial")
    if random.below(8) == 0 {
      asked.isReload = true
      request.setValue("no-cache", forHTTPHeaderField: "Cache-Control")
    }
    lines.append("\(now - Self.start): request \(serial) \(asked)")
    let task = Task { [cache, request, log = transport.log] in
      defer { log.append(nil) }
      return try await cache.request(request)
    }
    if asked.isReload { model.mayMissAll() }
    let sent = await nextEvent()
    if sent != nil, let best = model.best(asked), now < best.end, !best.canBeMissing {
      throw Wrong(what: "a fresh answer is there, and the request is sent")
    }
    var pending = Pending(asked: asked, task: task, sent: sent)
    (pending.time, pending.era) = (now, model.era)
    return pending
  }

  /// Waits for the next request at the transport, or for the end of one at the cache.
  private func nextEvent() async -> HeldTransport.Exchange? {
    events += 1
    return await transport.log.first(events)[events - 1]
  }

  /// Answers a request until it ends, and checks the result.
  private func answer(_ first: Pending) async throws {
    var (pending, answers, failures, isOffline) = (first, 0, 0, random.below(12) == 0)
    var body: String?
    while let exchange = pending.sent {
      answers += 1
      guard answers < 8 else { throw Wrong(what: "a request is sent without end") }
      guard exchange.account == pending.asked.account else {
        throw Wrong(what: "'\(exchange.account)' is asked for '\(pending.asked.account)'")
      }
      if isOffline || (failures == 0 && random.below(6) == 0) {
        failures += 1
        lines.append("  an attempt fails")
        exchange.fail()
        if failures % 2 == 1 {
          await clock.sleepers(1)
          if random.below(2) == 0 { try await signIn() }
          clock.advance(by: .seconds(1))
        } else {
          isOffline = false
        }
      } else {
        if let body { model.mayMiss(text: body) }
        body = try reply(to: exchange, pending)
        // What follows is another fetch.
        pending.era = model.era
      }
      pending.sent = await nextEvent()
      pending.time = now
    }
    // A newer answer to no-cache replaces the older ones of the URL.
    if pending.asked.isReload { model.mayMissAll() }
    switch await pending.task.result {
    case .success(let text):
      lines.append("  -> \(text)")
      try check(text, pending, isOwn: text == body, isSent: answers > 0)
    case .failure(let error):
      lines.append("  -> \(error)")
      guard failures > 0 else { throw Wrong(what: "an answer is no error: \(error)") }
    }
  }

  private func check(_ text: String, _ pending: Pending, isOwn: Bool, isSent: Bool) throws {
    guard text.hasPrefix("'\(pending.asked.account)'") else {
      throw Wrong(what: "'\(pending.asked.account)' is given an answer of another account")
    }
    if isOwn { return }
    let suitable = model.suitable(pending.asked)
    guard let best = suitable.first(where: { $0.text == text }) else {
      throw Wrong(what: "an answer is reused that was not stored for the request")
    }
    for newer in suitable.prefix(while: { $0.text != text }) where !newer.canBeMissing {
      throw Wrong(what: "\(text) is used, and \(newer.text) is more recent")
    }
    if isSent {
      // It replaces a server that cannot be reached.
      if best.forbidsStale, now >= best.end { throw Wrong(what: "a value must be revalidated") }
    } else if now >= best.end || pending.asked.isReload {
      throw Wrong(what: "a stale value is used")
    }
  }

  /// Answers a request with random directives; returns the text that its caller gets.
  private func reply(to exchange: HeldTransport.Exchange, _ pending: Pending) throws -> String {
    let asked = pending.asked
    let isCurrent = pending.era == model.era
    if !isCurrent { hasLateAnswers = true }
    let (control, lifetime, isStored, forbidsStale) = Self.controls[
      random.below(Self.controls.count)
    ]
    let date = now - [0, 0, 1, 3, 8][random.below(5)]
    var headers = ["Date": Self.date(date)]
    headers["Cache-Control"] = control
    let known = exchange.tag.flatMap { tag in
      model.suitable(asked).first { $0.tag == tag }
    }
    if isCurrent, let tag = exchange.tag, model.stored.allSatisfy({ $0.tag != tag }) {
      throw Wrong(what: "a value is renewed that was not stored: \(tag)")
    }
    // The age at the arrival counts towards the lifetime (4.2.3).
    let begin = min(date, pending.time)
    let end = begin + lifetime
    if let known, random.below(2) == 0 {
      headers["ETag"] = known.tag
      lines.append("  304 \(control ?? "-") date \(date - Self.start)")
      exchange.reply(status: 304, headers: headers, "")
      // Without a field of its own the one that the value came with holds.
      let isOpen = control == nil
      model.confirm(known, date: date) { old in
        guard isOpen || isStored else { return nil }
        let newEnd = isOpen ? begin + old.lifetime : end
        return isOpen
          ? (newEnd, old.lifetime, old.forbidsStale) : (newEnd, lifetime, forbidsStale)
      }
      return known.text
    }
    let names = [[], ["accept-language"], ["x-kind"], ["accept-language", "x-kind"]][
      random.below(4)
    ]
    if !names.isEmpty { headers["Vary"] = names.joined(separator: ", ") }
    serial += 1
    let tag = "\"\(serial)\""
    headers["ETag"] = tag
    let text = "'\(exchange.account)' \(serial)"
    lines.append("  200 \(text) \(control ?? "-") vary \(names) date \(date - Self.start)")
    exchange.reply(status: 200, headers: headers, text)
    if let tag = exchange.tag { model.mayMiss(tag) }
    if isStored, isCurrent {
      model.store(
        asked,
        names: names,
        HTTPModel.Stored(
          account: asked.account,
          selecting: [:],
          names: [],
          text: text,
          tag: tag,
          date: date,
          end: end,
          lifetime: lifetime,
          forbidsStale: forbidsStale,
          // A renewal is for the entry of the old value.
          canBeMissing: exchange.tag != nil || asked.isReload
        )
      )
    }
    return text
  }

  /// A change that is answered at once.
  private func change() async throws {
    guard let url else { return }
    var request = URLRequest(url: url)
    request.httpMethod = ["POST", "PUT", "DELETE"][random.below(3)]
    let fails = random.below(4) == 0
    lines.append("\(now - Self.start): \(request.httpMethod ?? "") \(fails ? "fails" : "")")
    let task = Task { [cache, request, log = transport.log] in
      defer { log.append(nil) }
      return try await cache.request(request)
    }
    guard let exchange = await nextEvent() else { throw Wrong(what: "a change is not sent") }
    exchange.reply(status: fails ? 500 : 200, headers: [:], "changed")
    guard await nextEvent() == nil else { throw Wrong(what: "a change is sent twice") }
    _ = await task.result
    if !fails { model.removeAll() }
  }

  private static let controls: [(String?, Int, Bool, Bool)] = [
    ("max-age=10", 10, true, false), ("private, max-age=4", 4, true, false),
    ("max-age=10", 10, true, false), ("max-age=0", 0, true, false),
    ("max-age=5, must-revalidate", 5, true, true), ("no-cache, max-age=10", 0, true, true),
    ("no-store, max-age=10", 0, false, true), (nil, 0, true, false),
  ]

  /// A history is shorter than an hour.
  private static func date(_ seconds: Int) -> String {
    let rest = seconds - start + 1_800
    let (minute, second) = ("\(100 + rest / 60)".dropFirst(), "\(100 + rest % 60)".dropFirst())
    return "Fri, 15 Jan 2027 08:\(minute):\(second) GMT"
  }
}

/// The stored answers as RFC 9111 describes them.
private struct HTTPModel {
  struct Asked: CustomStringConvertible {
    let account: String
    var fields: [String: String] = [:]
    var isReload = false

    var description: String {
      let fields = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return "'\(account)' \(fields.joined(separator: " "))\(isReload ? " no-cache" : "")"
    }
  }

  struct Stored {
    let account: String
    /// The fields that `Vary` has named, as the request had them.
    var selecting: [String: String]
    var names: [String]
    let text: String
    let tag: String
    var date: Int
    /// When it becomes stale.
    var end: Int
    var lifetime: Int
    var forbidsStale: Bool
    var number = 0
    /// Whether a cache can have dropped it, as it always can.
    var canBeMissing = false

    func isForTheSame(as other: Stored) -> Bool {
      account == other.account && names == other.names && selecting == other.selecting
    }
  }

  private(set) var stored: [Stored] = []
  private var lastNumber = 0
  /// The number of changes.
  private(set) var era = 0

  /// The most recent answer that is for a request.
  func best(_ asked: Asked) -> Stored? { suitable(asked).first }

  /// The answers that are for a request, the most recent one first (4 and 4.1).
  func suitable(_ asked: Asked) -> [Stored] {
    stored.filter { answer in
      answer.account == asked.account
        && answer.names.allSatisfy { answer.selecting[$0] == asked.fields[$0] }
    }.sorted { ($0.date, $0.number) > ($1.date, $1.number) }
  }

  mutating func store(_ asked: Asked, names: [String], _ answer: Stored) {
    var answer = answer
    lastNumber += 1
    answer.number = lastNumber
    answer.names = names
    answer.selecting = asked.fields.filter { names.contains($0.key) }
    for index in stored.indices where stored[index].isForTheSame(as: answer) {
      // Of two for the same requests only the more recent one is of use.
      if stored[index].date > answer.date {
        answer.canBeMissing = true
      } else {
        stored[index].canBeMissing = true
      }
    }
    stored.append(answer)
  }

  /// A 304 makes an answer fresh again, or forbids to keep it (4.3.4).
  mutating func confirm(
    _ known: Stored,
    date: Int,
    _ terms: (Stored) -> (end: Int, lifetime: Int, forbidsStale: Bool)?
  ) {
    guard let index = stored.firstIndex(where: { $0.tag == known.tag }) else { return }
    lastNumber += 1
    guard let (end, lifetime, forbidsStale) = terms(stored[index]) else {
      stored.remove(at: index)
      return
    }
    stored[index].date = date
    stored[index].end = end
    stored[index].lifetime = lifetime
    stored[index].forbidsStale = forbidsStale
    stored[index].number = lastNumber
  }

  /// Records that an answer can be missing: it was for another request, which was sent again.
  mutating func mayMiss(text: String) {
    for index in stored.indices where stored[index].text == text {
      stored[index].canBeMissing = true
    }
  }

  /// The answer with a tag was to be renewed, and its server has another one.
  mutating func mayMiss(_ tag: String) {
    for index in stored.indices where stored[index].tag == tag {
      stored[index].canBeMissing = true
    }
  }

  mutating func mayMissAll() {
    for index in stored.indices { stored[index].canBeMissing = true }
  }

  /// A change invalidates all answers of the URL, also those on their way (4.4).
  mutating func removeAll() {
    stored = []
    era += 1
  }
}

/// A transport whose requests wait for the test to answer them.
private final class HeldTransport: HTTPTransport {
  /// A request that waits for its answer.
  struct Exchange: Sendable {
    let request: URLRequest
    fileprivate let continuation: CheckedContinuation<(Int, [String: String], String)?, Never>

    /// The account that the request is sent for.
    var account: String {
      String((request.value(forHTTPHeaderField: "Cookie") ?? "s=").dropFirst(2))
    }

    var tag: String? { request.value(forHTTPHeaderField: "If-None-Match") }

    func reply(status: Int, headers: [String: String], _ text: String) {
      continuation.resume(returning: (status, headers, text))
    }

    func fail() { continuation.resume(returning: nil) }
  }

  /// The requests in order; `nil` is the end of a request of the cache.
  let log = Log<Exchange?>()

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    let answer = await withCheckedContinuation { continuation in
      log.append(Exchange(request: request, continuation: continuation))
    }
    guard let (status, headers, text) = answer else { throw URLError(.networkConnectionLost) }
    try receiver.take(request, status: status, headers: headers, text)
  }
}

extension SeededRandom {
  fileprivate mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}
