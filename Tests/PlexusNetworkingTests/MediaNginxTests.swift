import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import Testing

/// A server that others have written, for a test.
private final class Nginx: Sendable {
  /// Where it is, if it is installed.
  static let path: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    return (folders.map(String.init) + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"])
      .map { $0 + "/nginx" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  let folder: URL
  let address: String
  private let process: Process

  init(_ locations: String) throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "nginx-\(UUID().uuidString)")
    self.folder = folder
    try FileManager.default.createDirectory(
      at: folder.appending(path: "root"),
      withIntermediateDirectories: true
    )
    // A port that was free a moment ago.
    let origin = try LoopbackOrigin()
    let port = origin.port
    origin.stop()
    address = "http://127.0.0.1:\(port)"
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(folder.path)/\($0);" }
      .joined(separator: "\n")
    let configuration = """
      daemon off; master_process off; pid \(folder.path)/pid; error_log stderr crit;
      events {}
      http {
        \(temporary)
        access_log \(folder.path)/access;
        server { listen 127.0.0.1:\(port); root \(folder.path)/root; \(locations) }
      }
      """
    try Data(configuration.utf8).write(to: folder.appending(path: "conf"))
    process = Process()
    process.executableURL = URL(filePath: Self.path ?? "")
    process.arguments = ["-p", folder.path, "-c", folder.path + "/conf", "-e", "stderr"]
    try process.run()
  }

  deinit {
    // It has nothing to write down, and inherits what this process does with gentler signals.
    kill(process.processIdentifier, SIGKILL)
    try? FileManager.default.removeItem(at: folder)
  }

  func write(_ data: Data, to name: String) throws {
    try data.write(to: folder.appending(path: "root/" + name))
  }

  func url(_ name: String) throws -> URL {
    try #require(URL(string: address + "/" + name))
  }

  /// The status codes of the answers, in order; it writes them down when an answer has ended.
  var statuses: [String] {
    let log = (try? String(contentsOf: folder.appending(path: "access"), encoding: .utf8)) ?? ""
    return log.split(separator: "\n").compactMap { line in
      line.split(separator: "\"").dropFirst(2).first?.split(separator: " ").first.map(String.init)
    }
  }
}

@Suite(
  .serialized,
  .timeLimit(.minutes(5)),
  .enabled(if: Nginx.path != nil, "nginx is not installed")
)
struct `A media loader and nginx` {
  let folder = MediaTestFolder()
  let body = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) })

  /// It tries again as long as the server is not there yet.
  private func loader() -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 120),
      retry: .exponential(
        attempts: 200,
        base: .milliseconds(20),
        cap: .milliseconds(100),
        jitter: 0
      )
    )
  }

  /// Begins to download and leaves.
  private func leavePart(of url: URL) async throws {
    let loader = loader()
    let progress = loader.progress(of: url)
    let request = Task { try await loader.request(url) }
    for await progress in progress where progress.receivedBytes > 0 { request.cancel() }
    await #expect(throws: CancellationError.self) { try await request.value }
    #expect(folder.parts.count == 1)
  }

  @Test func `a download is continued`() async throws {
    let server = try Nginx("location /slow { limit_rate 2m; }")
    try server.write(body, to: "slow")
    let url = try server.url("slow")
    try await leavePart(of: url)
    #expect(try Data(contentsOf: await loader().request(url)) == body)
    #expect(server.statuses.contains("206"))
    #expect(folder.files.count == 1)
  }

  @Test func `a file that has changed is loaded from the beginning`() async throws {
    let server = try Nginx("location /slow { limit_rate 2m; }")
    try server.write(body, to: "slow")
    let url = try server.url("slow")
    try await leavePart(of: url)
    let other = Data(repeating: 9, count: 2_999_999)
    try server.write(other, to: "slow")
    #expect(try Data(contentsOf: await loader().request(url)) == other)
    #expect(!server.statuses.contains("206"))
  }

  @Test func `answers that are none, moved or coded are taken as they are meant`() async throws {
    let server = try Nginx(
      """
      location /moved { return 302 /plain; }
      location /far { return 301 ftp://localhost/; }
      location /loop { return 302 /loop; }
      gzip on; gzip_types *;
      """
    )
    try server.write(body, to: "plain")
    let loader = loader()
    #expect(try Data(contentsOf: await loader.request(server.url("moved"))) == body)
    #expect(try Data(contentsOf: await loader.request(server.url("plain?coded"))) == body)
    for (name, error) in [("far", URLError.Code.unsupportedURL), ("loop", .httpTooManyRedirects)] {
      let thrown = await #expect(throws: URLError.self) {
        try await loader.request(server.url(name))
      }
      #expect(thrown?.code == error)
    }
    let missing = await #expect(throws: HTTPStatusError.self) {
      try await loader.request(server.url("missing"))
    }
    #expect(missing?.status == 404)
    #expect(folder.files.count == 2)
  }
}
