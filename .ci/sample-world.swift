// The context of the samples in the documentation.

import Foundation
import LoopbackOrigin
import Observation
import Plexus
import PlexusTesting
import Synchronization

struct Profile: Codable, Sendable, Equatable {
  var name = "Ada"
}

struct Backend: Sendable {
  func fetchProfile() async throws -> Profile { Profile() }
  func fetchUser(_ id: Int) async throws -> Profile { Profile() }
}

let backend = Backend()

let clock = ManualClock()

/// A page of an origin on this machine, with articles below it.
let url: URL = {
  guard let url = URL(string: (origin?.address ?? "http://127.0.0.1:1") + "/page") else { return .temporaryDirectory }
  return url
}()

private let origin: LoopbackOrigin? = {
  let origin = try? LoopbackOrigin()
  let headers: OriginHeaders = ["Cache-Control": "max-age=60"]
  origin?.route("/page") { _ in
    OriginResponse(headers: headers, body: Array("{\"temperature\": 21.5}".utf8))
  }
  let texts = Mutex<[String: [UInt8]]>([:])
  origin?.route("/page/*", methods: [.get, .put]) { request in
    if request.method == .put {
      texts.withLock { $0[request.path] = request.body }
      return OriginResponse(status: 204)
    }
    let body = texts.withLock { $0[request.path] } ?? Array("article \(request.pathComponents[1])".utf8)
    return OriginResponse(headers: headers, body: body)
  }
  return origin
}()

// The models of the articles about screens.

@MainActor @Observable final class Document {
  var title = "Draft"
}

struct ListState: Sendable, Equatable {
  var text = ""
  var ids = Array(1...100)
}

enum ListAction: Sendable {
  case typed(String)
  case deleted(Int)
}

struct AppModel: Sendable {
  let list = Store<ListState, ListAction>(ListState()) { state, action in
    if case .typed(let text) = action { state.text = text }
  }
  let people = MultiplexerMap<Int, Profile> { id in try await backend.fetchUser(id) }

  func signOut() async throws {}
}

struct Settings: Sendable, Equatable {
  var isMuted = false
  var volume = 3
}

struct Form: Sendable, Equatable {
  var text = ""
  var isSending = false
}
