import Foundation
import TestSupport
import Testing

/// A real browser without a window, to which tests talk by its protocol for developers.
///
/// It ends with the last reference, and with this process however that ends.
final class Browser: Sendable {
  /// The browser's program, if this machine has one.
  static let executable =
    ProcessInfo.processInfo.environment["PLEXUS_CHROMIUM"]
    ?? SystemProgram.path(
      of: "chromium",
      "chromium-browser",
      "google-chrome",
      "google-chrome-stable"
    )

  /// An error of the browser, or of the page.
  struct Failure: Error {
    let text: String
  }

  /// A message of the browser.
  private struct Message: Decodable, Sendable {
    struct Refusal: Decodable, Sendable { let message: String }

    let id: Int?
    let method: String?
    let error: Refusal?
  }

  private struct State {
    var lastID = 0
    var waiting: [Int: CheckedContinuation<Data, any Error>] = [:]
    var complaints: [String] = []
    var addresses: [String] = []
    var session = ""
  }

  /// Ends the browser when there is something to read, or when the process that could write has ended.
  private static let script = """
    "$@" 3<"$PLEXUS_PIPES/in" 4>"$PLEXUS_PIPES/out" >/dev/null 2>&1 </dev/null &
    browser=$!
    read -r _
    kill -KILL $browser 2>/dev/null
    """

  private let folder: URL
  private let process = Process()
  private let input = Pipe()
  private let requests: FileHandle
  private let answers: FileHandle
  private let state = Guarded(State())

  /// Starts the browser with an empty page.
  ///
  /// - Parameters:
  ///   - width: The width of the page.
  ///   - height: The height of the page.
  ///   - isDark: Whether the user prefers dark pages.
  init(width: Int = 1_280, height: Int = 900, isDark: Bool = false) async throws {
    let program = try #require(Self.executable)
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "browser-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let pipes = ["in", "out"].map { folder.appending(path: $0).path(percentEncoded: false) }
    for pipe in pipes where mkfifo(pipe, 0o600) != 0 {
      throw Failure(text: "No pipe can be made")
    }
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments =
      ["-c", Self.script, "sh", program] + Self.options + ["--user-data-dir=\(folder.path)/profile"]
    process.environment = ProcessInfo.processInfo.environment.merging(["PLEXUS_PIPES": folder.path])
    { $1 }
    process.standardInput = input
    try ProcessThread.run { [process] in try process.run() }
    (requests, answers) = try await blocking {
      let descriptors = [
        open(pipes[0], O_WRONLY | O_CLOEXEC), open(pipes[1], O_RDONLY | O_CLOEXEC),
      ]
      return (
        FileHandle(fileDescriptor: descriptors[0], closeOnDealloc: true),
        FileHandle(fileDescriptor: descriptors[1], closeOnDealloc: true)
      )
    }
    Thread.detachNewThread { [answers, weak self] in
      var buffer = Data()
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while true {
        // A file handle would wait until all of them have arrived.
        let count = read(answers.fileDescriptor, &bytes, bytes.count)
        guard count > 0 else { break }
        buffer += bytes[..<count]
        while let end = buffer.firstIndex(of: 0) {
          self?.take(Data(buffer[..<end]))
          buffer = Data(buffer[(end + 1)...])
        }
      }
      self?.fail()
    }
    try await prepare(width, height, isDark)
  }

  deinit {
    try? input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    try? ProcessThread.run { [process] in process.waitUntilExit() }
    try? FileManager.default.removeItem(at: folder)
  }

  private static let options = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-extensions", "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
  ]

  private func prepare(_ width: Int, _ height: Int, _ isDark: Bool) async throws {
    let target = try await call("Target.createTarget", ["url": "about:blank"])["targetId"]
    let parameters: [String: Any] = ["targetId": target ?? "", "flatten": true]
    let session = try await call("Target.attachToTarget", parameters)["sessionId"] as? String
    state.withLock { $0.session = session ?? "" }
    for domain in ["Runtime", "Log", "Network", "Page"] { _ = try await call("\(domain).enable") }
    _ = try await call(
      "Emulation.setDeviceMetricsOverride",
      ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false]
    )
    let scheme = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
    _ = try await call("Emulation.setEmulatedMedia", ["features": [scheme]])
  }

  /// Opens a page.
  func visit(_ url: URL, fragment: String = "") async throws {
    _ = try await call("Page.navigate", ["url": "\(url)\(fragment)"])
  }

  /// Returns the value of an expression of JavaScript, as JSON.
  func value(of expression: String) async throws -> Any? {
    let answer = try await call(
      "Runtime.evaluate",
      ["expression": expression, "awaitPromise": true, "returnByValue": true]
    )
    if let exception = answer["exceptionDetails"] { throw Failure(text: "\(exception)") }
    return (answer["result"] as? [String: Any])?["value"]
  }

  /// Waits until an expression is true, and fails after half a minute.
  func wait(until condition: String) async throws {
    let isTrue = try await value(
      of: """
        new Promise((resolve) => {
          const end = Date.now() + 30000;
          (function look() {
            let isTrue = false;
            try { isTrue = Boolean(\(condition)); } catch {}
            if (isTrue || Date.now() > end) resolve(isTrue); else setTimeout(look, 30);
          })();
        })
        """
    )
    guard isTrue as? Bool == true else {
      let text = try await value(of: "document.body.innerText") as? String ?? ""
      throw Failure(text: "\(condition) has not become true on the page:\n\(text)")
    }
  }

  /// Returns a picture of the page.
  func picture() async throws -> Data {
    let answer = try await call("Page.captureScreenshot", ["format": "png"])
    return Data(base64Encoded: answer["data"] as? String ?? "") ?? Data()
  }

  /// The messages of the console: errors, warnings and exceptions.
  var complaints: [String] { state.withLock { $0.complaints } }

  /// The addresses from which the page has fetched something.
  var addresses: [String] { state.withLock { $0.addresses } }

  private func call(
    _ method: String,
    _ parameters: [String: Any] = [:]
  ) async throws -> [String: Any] {
    let (id, session) = state.withLock { state in
      state.lastID += 1
      return (state.lastID, state.session)
    }
    var message: [String: Any] = ["id": id, "method": method, "params": parameters]
    if !session.isEmpty { message["sessionId"] = session }
    let data = try JSONSerialization.data(withJSONObject: message) + [0]
    let answer = try await withCheckedThrowingContinuation { continuation in
      state.withLock { $0.waiting[id] = continuation }
      Thread.detachNewThread { [requests] in try? requests.write(contentsOf: data) }
    }
    let json = try JSONSerialization.jsonObject(with: answer) as? [String: Any]
    return json?["result"] as? [String: Any] ?? [:]
  }

  private func take(_ data: Data) {
    guard let message = try? JSONDecoder().decode(Message.self, from: data) else { return }
    if let id = message.id {
      let continuation = state.withLock { $0.waiting.removeValue(forKey: id) }
      if let error = message.error {
        continuation?.resume(throwing: Failure(text: error.message))
      } else {
        continuation?.resume(returning: data)
      }
      return
    }
    switch message.method {
    case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
      state.withLock { $0.complaints.append(String(decoding: data, as: UTF8.self)) }
    case "Network.requestWillBeSent":
      guard let json = try? JSONSerialization.jsonObject(with: data) as? [String: Any],
        let parameters = json["params"] as? [String: Any],
        let request = parameters["request"] as? [String: Any]
      else { return }
      let address = request["url"] as? String ?? ""
      state.withLock { $0.addresses.append(address) }
    default: break
    }
  }

  private func fail() {
    let waiting = state.withLock { state in
      defer { state.waiting = [:] }
      return state.waiting
    }
    for continuation in waiting.values {
      continuation.resume(throwing: Failure(text: "The browser has ended"))
    }
  }
}
