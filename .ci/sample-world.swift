// What the samples of the documentation take for granted.

import Plexus
import PlexusTesting

struct Profile: Sendable, Equatable {
  var name = "Ada"
}

struct Backend: Sendable {
  func fetchProfile() async throws -> Profile { Profile() }
  func fetchUser(_ id: Int) async throws -> Profile { Profile() }
}

let backend = Backend()

let clock = ManualClock()
