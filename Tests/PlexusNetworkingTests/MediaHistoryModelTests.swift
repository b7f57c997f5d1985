import Foundation
import Plexus
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Random histories of two loaders of one folder, which others change, compared with what is on the disk and with what
/// the server has had.
@Suite(.fewAtOnce)
struct `Histories of a folder of media` {
  @Test(.guarantee(.mediaHoldsInRandomHistories), arguments: 0..<8)
  func `in random histories, files come from the server, are counted and not downloaded twice`(
    part: Int
  ) async throws {
    for number in 0..<Effort.count(260) {
      let history = MediaHistory(seed: UInt64(part * 1_000 + number))
      await history.run(steps: 6)
      try #require(
        history.failures.isEmpty,
        "seed \(history.seed): \(history.failures)\n\(history.steps.joined(separator: "\n"))"
      )
    }
  }
}

/// One history; its steps follow one another, and one step can have others in its midst.
private final class MediaHistory: Sendable {
  /// A version of a file at the server.
  private struct Version: Sendable {
    let text: String
    let tag: String
    var isUndecodable: Bool { text.contains("!") }
  }

  /// A fault of the server in the next request.
  private enum Trick: CaseIterable {
    case breaksOff, confirmsAnother, fails
  }

  /// An event in the midst of a step.
  private enum Interlude: CaseIterable {
    case reload, remove, clear, removeFolder, removeFile
  }

  /// A moment of a step in which an interlude can come.
  private enum Moment: CaseIterable {
    case beforeAnswer, withinAnswer, whileDecoding
  }

  private struct State {
    var numbers: SeededRandom
    var steps: [String] = []
    var failures: [String] = []
    /// All versions of each file, the present one last.
    var versions: [[Version]]
    var status: [Int]
    /// The files that others have truncated.
    var truncated: Set<Int> = []
    var trick: Trick?
    /// The loader and the file of the present step.
    var place = (loader: 0, file: 0, reloads: false)
    var interlude: Interlude?
    var moment = Moment.beforeAnswer
    /// Whether the interlude has removed the file of the step, which must not come back.
    var isRemoved = false
    /// Whether there was an interlude, or a trick, in this step.
    var isDisturbed = false
    var isInInterlude = false
    var requests = 0
    /// The file that an interlude has stored, and whether a download of the step has ended since.
    var stored: (text: String, bySameLoader: Bool, isFollowedByDownload: Bool)?
    /// Whether the last thing that happened to the folder was a download of the present loader.
    var endsWithDownload = false
  }

  let seed: UInt64
  private static let fileCount = 5
  private let folder = MediaTestFolder()
  /// The folder by another name, if the second loader is like one of another process.
  private let alias: MediaTestAlias?
  private let filesPath: String
  private let state: Guarded<State>
  private let limit: Int?
  private let revalidates: [Bool]
  private let loaders: [MediaLoader]
  private let images: [ImageLoader<String>]

  var steps: [String] { state.withLock { $0.steps } }
  var failures: [String] { state.withLock { $0.failures } }

  init(seed: UInt64) {
    var numbers = SeededRandom(seed: seed)
    let limit = Bool.random(using: &numbers) ? 40 : nil
    let revalidates = (0..<2).map { _ in Bool.random(using: &numbers) }
    let alias = Bool.random(using: &numbers) ? try? MediaTestAlias(of: folder) : nil
    let versions = (0..<Self.fileCount).map { [Version(text: "\($0)-0.", tag: "\"0\"")] }
    let state = Guarded(
      State(
        numbers: numbers,
        versions: versions,
        status: Array(repeating: 200, count: Self.fileCount)
      )
    )
    self.seed = seed
    self.alias = alias
    filesPath = folder.url.path + "/files/"
    self.state = state
    self.limit = limit
    self.revalidates = revalidates
    let box = Guarded<@Sendable (Moment) async -> Void>({ _ in })
    let transport = ClosureTransport { _, request, receiver in
      try await Self.answer(request, receiver, state, box.withLock { $0 })
    }
    let directories = [folder.url, alias?.url ?? folder.url]
    let loaders = zip(directories, revalidates).map { directory, revalidates in
      MediaLoader(
        directory: directory,
        transport: transport,
        rules: .patient,
        byteLimit: limit,
        revalidates: revalidates,
        retry: .never
      )
    }
    self.loaders = loaders
    images = loaders.map { media in
      ImageLoader(media: media, capacity: .count(2)) { data in
        await box.withLock { $0 }(.whileDecoding)
        let text = String(decoding: data, as: UTF8.self)
        guard !text.contains("!") else { throw Undecodable() }
        return text
      }
    }
    let (folder, areApart) = (folder, alias != nil)
    box.withLock { box in
      box = { await Self.interrupt($0, state, loaders, areApart, folder) }
    }
  }

  private static let urls = (0..<fileCount).compactMap {
    URL(string: "http://nowhere.invalid/\($0)")
  }
  private static let names = urls.map { MediaFolder.name(ofKey: $0.absoluteString) }

  private static func url(_ file: Int) -> URL { urls[file] }

  // MARK: - The server

  @concurrent
  private static func answer(
    _ request: URLRequest,
    _ receiver: any HTTPReceiver,
    _ state: Guarded<State>,
    _ interrupt: @Sendable (Moment) async -> Void
  ) async throws {
    let file = Int(request.url?.lastPathComponent ?? "") ?? 0
    let (version, status, trick) = state.withLock { state in
      state.requests += 1
      defer { state.trick = nil }
      if state.trick != nil { state.isDisturbed = true }
      return (state.versions[file][state.versions[file].count - 1], state.status[file], state.trick)
    }
    // The answer is that of now, and arrives after the interlude.
    await interrupt(.beforeAnswer)
    guard status == 200, trick != .fails else {
      return try receiver.take(request, status: status == 200 ? 503 : status, "no")
    }
    let tag = ["ETag": version.tag]
    if let known = request.value(forHTTPHeaderField: "If-None-Match") {
      if trick == .confirmsAnother {
        return try receiver.begin(request, status: 304, headers: ["ETag": "\"other\""])
      }
      if known == version.tag { return try receiver.begin(request, status: 304, headers: tag) }
    }
    let length = version.text.utf8.count
    var start = 0
    if let range = request.value(forHTTPHeaderField: "Range"),
      request.value(forHTTPHeaderField: "If-Range") == version.tag
    {
      start = Int(range.dropFirst(6).dropLast()) ?? 0
      guard start < length else { return try receiver.begin(request, status: 416) }
      let fields = ["Content-Range": "bytes \(start)-\(length - 1)/\(length)"]
      try receiver.begin(request, status: 206, headers: tag.merging(fields) { $1 })
    } else {
      try receiver.begin(request, headers: tag.merging(["Content-Length": "\(length)"]) { $1 })
    }
    let rest = Array(version.text.utf8.dropFirst(start))
    let isBroken = trick == .breaksOff && rest.count > 1
    try receiver.receive(Data(rest.prefix(rest.count / 2)))
    await interrupt(.withinAnswer)
    if isBroken { throw URLError(.networkConnectionLost) }
    try receiver.receive(Data(rest.dropFirst(rest.count / 2)))
    state.withLock { state in
      if !state.isInInterlude { state.stored?.isFollowedByDownload = true }
      state.endsWithDownload = !state.isInInterlude
    }
  }

  // MARK: - The others

  /// Performs the interlude of the present step, if there is one.
  @concurrent
  private static func interrupt(
    _ moment: Moment,
    _ state: Guarded<State>,
    _ loaders: [MediaLoader],
    _ areApart: Bool,
    _ folder: MediaTestFolder
  ) async {
    let found = state.withLock { state -> (Interlude, Int, Int)? in
      guard !state.isInInterlude, moment == state.moment, let interlude = state.interlude.take()
      else { return nil }
      (state.isInInterlude, state.isDisturbed) = (true, true)
      var loader = Int.random(in: 0..<2, using: &state.numbers)
      // A reload in the midst of itself would wait for itself.
      if interlude == .reload, state.place.reloads { loader = 1 - state.place.loader }
      state.steps.append("  meanwhile, \(moment): \(interlude) by \(loader)")
      // Another process finds out by the part of the download that the file was removed.
      let isNoticed = !areApart || loader == state.place.loader || moment == .withinAnswer
      state.isRemoved = isNoticed && (interlude == .remove || interlude == .clear)
      return (interlude, loader, state.place.file)
    }
    guard let (interlude, loader, file) = found else { return }
    switch interlude {
    case .reload:
      let stored = try? await loaders[loader].reload(urls[file])
      let text = stored.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
      state.withLock { state in
        state.truncated.remove(file)
        state.stored = text.map { ($0, loader == state.place.loader, false) }
      }
    case .remove:
      try? await loaders[loader].remove(urls[file])
      if folder.parts.contains(where: { $0.hasPrefix("parts/" + names[file].prefix(64)) }) {
        state.withLock { $0.failures.append("a part is left of a removed file") }
      }
    case .clear: try? await loaders[loader].clear()
    case .removeFolder: try? FileManager.default.removeItem(at: folder.url)
    case .removeFile:
      try? FileManager.default.removeItem(at: folder.url.appending(path: "files/" + names[file]))
    }
    state.withLock { state in
      (state.isInInterlude, state.endsWithDownload) = (false, false)
    }
  }

  private func random(_ count: Int) -> Int {
    state.withLock { Int.random(in: 0..<count, using: &$0.numbers) }
  }

  private func fail(_ sentence: String) {
    state.withLock { $0.failures.append(sentence) }
  }

  private func path(_ file: Int) -> String { filesPath + Self.names[file] }

  private func place(_ file: Int) -> URL { URL(filePath: path(file)) }

  private func text(_ file: Int) -> String? {
    FileManager.default.contents(atPath: path(file)).map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: - Steps

  func run(steps: Int) async {
    for _ in 0..<steps where failures.isEmpty {
      let (kind, loader, file) = (random(16), random(2), random(Self.fileCount))
      state.withLock { state in
        state.place = (loader, file, kind == 5 || kind == 9)
        (state.interlude, state.stored) = (nil, nil)
        (state.isDisturbed, state.endsWithDownload, state.requests) = (false, false, 0)
        state.isRemoved = false
        let moments = Moment.allCases.prefix(kind < 6 ? 2 : 3)
        state.moment = moments.randomElement(using: &state.numbers) ?? .beforeAnswer
        let isMeanwhile = kind < 10 && Int.random(in: 0..<3, using: &state.numbers) == 0
        if isMeanwhile { state.interlude = Interlude.allCases.randomElement(using: &state.numbers) }
        let isTricky = kind < 10 && Int.random(in: 0..<4, using: &state.numbers) == 0
        if isTricky { state.trick = Trick.allCases.randomElement(using: &state.numbers) }
      }
      await perform(kind, loader, file)
      if state.withLock({ $0.isRemoved }), text(file) != nil {
        fail("a removed file has come back")
      }
      state.withLock { $0.trick = nil }
    }
  }

  private func note(_ text: String) {
    state.withLock { state in
      let (interlude, trick) = (state.interlude, state.trick)
      let more = [interlude.map { "\($0)" }, trick.map { "\($0)" }].compactMap(\.self)
      state.steps.append("\(text) \(more)")
    }
  }

  private func perform(_ kind: Int, _ loader: Int, _ file: Int) async {
    let url = Self.url(file)
    switch kind {
    case 0..<4:
      note("request of \(file) by \(loader)")
      await request(loader, file) { try await self.loaders[loader].request(url) }
    case 4:
      let versions = state.withLock { $0.versions[file] }
      let wanted = versions[random(versions.count)].text
      note("request of \(file) by \(loader), as \(wanted)")
      let digest = SHA256.hexadecimalDigest(wanted.utf8)
      await request(loader, file, as: wanted) {
        try await self.loaders[loader].request(url, sha256: digest)
      }
    case 5:
      note("reload of \(file) by \(loader)")
      await request(loader, file, reloads: true) { try await self.loaders[loader].reload(url) }
    case 6..<10: await image(loader, file, reloads: kind == 9)
    case 10: await change(file)
    case 11:
      let status = [200, 200, 404, 410][random(4)]
      note("\(file) is answered by \(status)")
      state.withLock { $0.status[file] = status }
    case 12:
      note("remove \(file) by \(loader)")
      try? await loaders[loader].remove(url)
      if text(file) != nil { fail("a file is there after it was removed") }
    case 13:
      note("clear by \(loader)")
      try? await (random(2) == 0 ? loaders[loader].clear() : images[loader].clear())
      if !folder.files.isEmpty || !folder.records.isEmpty { fail("something is left") }
    default: outside(kind == 14, file)
    }
  }

  /// The server gets another version, maybe of the same tag, and maybe one that cannot be decoded.
  private func change(_ file: Int) async {
    let (sameTag, bad) = (random(3) == 0, random(3) == 0)
    let padding = String(repeating: ".", count: random(8))
    state.withLock { state in
      let count = state.versions[file].count
      let tag = sameTag ? state.versions[file][count - 1].tag : "\"\(count)\""
      let text = "\(file)-\(count)" + (bad ? "!" : "") + padding
      state.versions[file].append(Version(text: text, tag: tag))
      state.steps.append("\(file) is \(text), \(tag)")
    }
  }

  /// Others change the folder.
  private func outside(_ isFile: Bool, _ file: Int) {
    let manager = FileManager.default
    guard isFile else {
      note("the folder is removed")
      let paths = ["", "files", "parts", "records"]
      try? manager.removeItem(at: folder.url.appending(path: paths[random(4)]))
      return
    }
    switch random(3) {
    case 0:
      note("file \(file) is removed")
      try? manager.removeItem(at: place(file))
    case 1:
      note("file \(file) is truncated")
      guard let handle = try? FileHandle(forWritingTo: place(file)) else { return }
      try? handle.truncate(atOffset: 1)
      try? handle.close()
      state.withLock { _ = $0.truncated.insert(file) }
    default:
      note("file \(file) is replaced")
      guard text(file) != nil, let old = state.withLock({ $0.versions[file].first }) else { return }
      try? Data(old.text.utf8).write(to: place(file), options: .atomic)
      state.withLock { _ = $0.truncated.remove(file) }
    }
  }

  private func request(
    _ loader: Int,
    _ file: Int,
    as wanted: String? = nil,
    reloads: Bool = false,
    _ body: () async throws -> URL
  ) async {
    let (before, hasParts) = (text(file), !folder.parts.isEmpty)
    do {
      let found = try await body()
      guard let text = try? String(contentsOf: found, encoding: .utf8) else {
        return fail("a file is not there when it is returned")
      }
      if let wanted, text != wanted { fail("\(text) has the digest of \(wanted)") }
      check(file, text, before)
    } catch MediaError.wrongChecksum {
      if let wanted, text(file) == wanted, state.withLock({ $0.stored == nil }) {
        fail("the right file has the wrong digest")
      }
    } catch is HTTPStatusError {
      let isGone = state.withLock { $0.status[file] != 200 && !$0.isDisturbed }
      if isGone, !reloads, text(file) != nil { fail("a file is there that the server has not") }
    } catch {
      let isExpected = error is URLError || error as? MediaError == .cleared
      if !isExpected { fail("\(error)") }
    }
    var most = 2
    if wanted == nil, !state.withLock({ $0.isDisturbed }) {
      if before != nil, !reloads, !revalidates[loader] { most = 0 }
      if before == nil, !hasParts { most = 1 }
    }
    checkDownloads(atMost: most)
    checkStored(file) { wanted == nil || $0 == wanted }
    checkCount(loader)
  }

  private func image(_ loader: Int, _ file: Int, reloads: Bool) async {
    note("\(reloads ? "reload" : "request") of image \(file) by \(loader)")
    let images = images[loader]
    let (known, before) = (images.cachedImage(for: Self.url(file)), text(file))
    do {
      let url = Self.url(file)
      let image = try await (reloads ? images.reload(url) : images.request(url))
      if !reloads, let known {
        if image != known { fail("\(image) is not the image in memory, \(known)") }
      } else {
        check(file, image, before)
      }
    } catch is Undecodable {
      if let text = text(file), !text.contains("!") { fail("the file can be decoded") }
    } catch {
      let isExpected =
        error is URLError || error is HTTPStatusError || error as? MediaError == .cleared
      if !isExpected { fail("\(error)") }
    }
    if !reloads, known != nil { checkDownloads(atMost: 0) }
    checkStored(file) { !$0.contains("!") }
  }

  // MARK: - Promises

  /// The returned content is a version that the server had.
  private func check(_ file: Int, _ text: String, _ before: String?) {
    let isKnown = state.withLock { state in
      state.versions[file].contains { $0.text == text } || state.truncated.contains(file)
    }
    if !isKnown { fail("the server never had \(text)") }
    if text != before { state.withLock { _ = $0.truncated.remove(file) } }
  }

  private func checkDownloads(atMost most: Int) {
    let count = state.withLock { $0.requests }
    if count > most + (state.withLock { $0.isDisturbed } ? 4 : 0) {
      fail("\(count) requests instead of \(most)")
    }
  }

  /// The file that an interlude has stored is there, unless a download or a verdict about itself followed.
  private func checkStored(_ file: Int, _ isRight: (String) -> Bool) {
    guard limit == nil, let stored = state.withLock({ $0.stored }), isRight(stored.text) else {
      return
    }
    guard let text = text(file) else { return fail("\(stored.text) was removed") }
    let isFinal = alias == nil || stored.bySameLoader || !stored.isFollowedByDownload
    if isFinal, text != stored.text { fail("\(text) has taken the place of \(stored.text)") }
  }

  /// The counted files and lengths are those on the disk.
  private func checkCount(_ loader: Int) {
    guard let limit, state.withLock({ $0.endsWithDownload }) else { return }
    var lengths: [String: Int] = [:]
    for path in folder.files {
      let name = path.split(separator: "/").last.map(String.init) ?? path
      let data = try? Data(contentsOf: folder.url.appending(path: path))
      lengths[name] = data?.count
    }
    let counted = loaders[loader].core.countedLengths
    // With less, no file has to go, so that nothing is looked at.
    let countedBytes = counted.values.reduce(0, +)
    if countedBytes > limit / 2, counted != lengths {
      fail("\(counted) is counted, \(lengths) is there")
    }
  }
}
