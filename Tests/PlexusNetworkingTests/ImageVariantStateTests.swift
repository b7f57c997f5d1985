import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `The variants of one image` {
  let folder = MediaTestFolder()

  @Test(
    arguments: [
      // The image, the view, and the longer side of the copy.
      (4_000, 3_000, 400, 300, 400), (3_000, 4_000, 300, 400, 400), (4_000, 3_000, 100, 300, 400),
      (4_000, 3_000, 400, 100, 400), (1_000, 1_000, 1, 1, 1), (10_000, 100, 100, 50, 5_000),
      (1_001, 1_000, 100, 100, 101), (32_768, 1, 1, 1, nil), (400, 300, 400, 300, nil),
      (400, 300, 4_000, 1, nil), (0, 100, 10, 10, nil), (-1, 100, 10, 10, nil),
      (.max, .max, 10, 10, 10), (400, 300, 0, 10, nil),
    ] as [(Int, Int, Int, Int, Int?)]
  )
  func `a thumbnail is the smallest copy that covers its view`(
    imageWidth: Int,
    imageHeight: Int,
    width: Int,
    height: Int,
    side: Int?
  ) {
    let variant = ImageVariant(width: width, height: height)
    #expect(variant.longerSide(ofImage: imageWidth, by: imageHeight) == side)
    #expect(ImageVariant("a").longerSide(ofImage: imageWidth, by: imageHeight) == nil)
  }

  @Test func `random thumbnails cover their views, and one pixel less would not`() {
    var random = SeededRandom(seed: 7)
    for _ in 0..<10_000 {
      let (imageWidth, imageHeight) = (
        Int.random(in: 1...9_000, using: &random), Int.random(in: 1...9_000, using: &random)
      )
      let (width, height) = (
        Int.random(in: 1...9_000, using: &random), Int.random(in: 1...9_000, using: &random)
      )
      let covers = { (side: Int) in
        let longer = max(imageWidth, imageHeight)
        return imageWidth * side >= width * longer && imageHeight * side >= height * longer
      }
      let variant = ImageVariant(width: width, height: height)
      let side = variant.longerSide(ofImage: imageWidth, by: imageHeight)
      guard let side else {
        #expect(imageWidth <= width || imageHeight <= height)
        continue
      }
      #expect(side <= max(imageWidth, imageHeight))
      #expect(covers(side))
      #expect(!covers(side - 1))
    }
  }

  @Test func `the most urgent variant is next while another one is decoded`() async throws {
    let gate = Gate()
    let order = Log<Int>()
    let media = MediaLoader(
      directory: folder.url,
      transport: ClosureTransport { _, request, receiver in try receiver.take(request, "x") },
      rules: .patient,
      retry: .never
    )
    let images = ImageLoader(media: media, concurrency: 1) { _, response in
      order.append(response.variant?.width ?? 0)
      try await gate.wait()
      return response.variant?.width ?? 0
    }
    let url = try #require(URL(string: "http://nowhere.invalid/a"))
    let requests = [(1, nil), (2, .low), (3, .high), (4, .medium), (5, .high)].map {
      (width: Int, priority: TaskPriority?) in
      MediaRequest(url, priority: priority, variant: ImageVariant(width: width, height: 1))
    }
    var tasks: [Task<Int, any Error>] = []
    for (count, request) in requests.enumerated() {
      tasks.append(Task { try await images.request(request) })
      await gate.arrivals(1)
      while images.decoder.gate.waitingCount < count { await Task.detached {}.value }
    }
    gate.open()
    for (index, task) in tasks.enumerated() { #expect(try await task.value == index + 1) }
    #expect(order.entries == [1, 3, 5, 4, 2])
  }

  @Test func `a file without variants is looked up by its key`() throws {
    let request = MediaRequest(
      try #require(URL(string: "http://nowhere.invalid/a#b")),
      cacheKey: "key",
      variant: ImageVariant("x")
    )
    #expect(MediaItem(request) == MediaItem(request).ofFile)
    #expect(MediaItem(request).decodingKey == "key")
    let item = MediaItem(request, hasVariant: true)
    #expect(item != MediaItem(request) && item.ofFile == MediaItem(request))
    #expect(item.decodingKey == "key\nx (1)")
    #expect(MediaEntry(item) == MediaEntry(request))
  }
}
