import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A snapshot of media` {
  let folder = MediaTestFolder()

  @Test func `a snapshot of media has the images in memory, and what is being decoded`()
    async throws
  {
    let gate = Gate()
    let files = try [1, 2].map { number in
      let file = folder.url.appending(path: "files-\(number).txt")
      try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
      try Data(repeating: 7, count: number).write(to: file)
      return file
    }
    let media = MediaLoader(directory: folder.url.appending(path: "media"), retry: .never)
    let images = ImageLoader<Int>(media: media, capacity: .cost(100) { $0 }) { data in
      try await gate.wait()
      return data.count
    }
    #expect(images.entries(limit: 10).isEmpty && images.flights(limit: 10).isEmpty)
    #expect(media.flights(limit: 10).isEmpty)
    let caller = Task { try await images.request(files[0]) }
    await gate.arrivals(1)
    let flights = images.flights(limit: 10)
    #expect(flights.map(\.key) == [files[0].absoluteString])
    #expect(flights.map(\.callerCount) == [1] && flights.map(\.isWaiting) == [false])
    #expect(flights.allSatisfy { $0.age >= .zero })
    gate.open()
    #expect(try await caller.value == 1)
    #expect(try await images.request(files[1]) == 2)
    let entries = images.entries(limit: 10).sorted { $0.cost < $1.cost }
    #expect(entries.map(\.key) == files.map(\.absoluteString))
    #expect(entries.map(\.cost) == [1, 2] && entries.map(\.state) == [.fresh, .fresh])
    #expect(entries.allSatisfy { $0.age >= .zero })
    #expect(images.entries(limit: 10) { $0.hasSuffix("-2.txt") }.map(\.cost) == [2])
    #expect(images.flights(limit: 10).isEmpty)
  }
}
