import Foundation
import Plexus

/// Requests some URLs repeatedly, and uses cached texts while their servers are unreachable.
@main
struct Watch {
  static func main() async {
    do {
      try await run(try Options(Array(CommandLine.arguments.dropFirst())))
    } catch let error as UsageError {
      complain("\(error.description)\n\(Options.usage)")
      exit(64)
    } catch {
      complain("\(error)")
      exit(1)
    }
  }

  private static func run(_ options: Options) async throws {
    let pages = try Pages(folder: options.folder)
    let watching = Task {
      while true {
        for url in options.urls { await show(url, of: pages) }
        try await Task.sleep(for: options.interval)
      }
    }
    await interruption()
    watching.cancel()
    try await pages.flush()
    say("Everything is on disk.")
  }

  private static func show(_ url: String, of pages: Pages) async {
    do {
      let page = try await pages.response(url)
      let age = page.age.formatted(.units(allowed: [.hours, .minutes, .seconds]))
      let remark = page.error.map { ", because \(reason($0))" } ?? ""
      say("\(url): \(page.value.utf8.count) bytes from \(page.source), \(age) old\(remark)")
    } catch is CancellationError {
      // Ctrl-C was pressed.
    } catch {
      say("\(url): \(reason(error))")
    }
  }

  private static func reason(_ error: any Error) -> String {
    error is URLError ? error.localizedDescription : "\(error)"
  }

  /// Prints a line without buffering, also to a file or a pipe.
  private static func say(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }

  private static func complain(_ text: String) {
    FileHandle.standardError.write(Data("Watch: \(text)\n".utf8))
  }
}
