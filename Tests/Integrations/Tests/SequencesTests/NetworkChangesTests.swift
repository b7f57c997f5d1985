#if os(Linux)
import Foundation
import Plexus
import PlexusTesting
import Testing

@Suite struct `Changes of the network` {
  private static let program = SystemProgram.path(of: "ip", alsoIn: ["/usr/sbin", "/sbin"])

  /// Runs the program that changes addresses, and returns whether it is allowed to.
  private func changeAddress(_ verb: String) throws -> Bool {
    try ProcessThread.run {
      let process = Process()
      process.executableURL = URL(filePath: Self.program ?? "/usr/sbin/ip")
      process.arguments = ["address", verb, "127.77.77.77/32", "dev", "lo"]
      process.standardError = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus == 0
    }
  }

  @Test(.enabled(if: program != nil && geteuid() == 0))
  func `an address that is added or removed is a signal`() async throws {
    let network = try NetworkChanges()
    let changes = Recorder(network.changed.subscription())
    guard try changeAddress("add") else { return }
    try await within(.seconds(60)) { _ = await changes.first(1) }
    #expect(try changeAddress("del"))
    try await within(.seconds(60)) { _ = await changes.first(2) }
    #expect(changes.elements.count >= 2)
  }

  @Test func `the kernel is asked no more when the object is released`() async throws {
    var network: NetworkChanges? = try NetworkChanges()
    let stream = try #require(network).changed.subscribe()
    network = nil
    try await within(.seconds(60)) { for await _ in stream {} }
    #expect(network == nil)
  }
}
#endif
