// swift-tools-version: 6.3
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

let linkerSettings: [LinkerSetting] = [
  // Valgrind, which counts instructions, cannot read the debug information.
  .unsafeFlags(["-Xlinker", "--strip-debug"], .when(platforms: [.linux]))
]

let package = Package(
  name: "plexus-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "plexus", path: "../.."),
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.4"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
  ],
  targets: [
    .target(
      name: "BenchmarkOrigin",
      swiftSettings: swiftSettings + [.enableUpcomingFeature("InternalImportsByDefault")]
    ),
    // Links to the server of the tests.
    .target(
      name: "BenchmarkRedis",
      swiftSettings: swiftSettings + [.enableUpcomingFeature("InternalImportsByDefault")]
    ),
    .executableTarget(
      name: "PlexusBenchmarks",
      dependencies: [
        "BenchmarkOrigin",
        "BenchmarkRedis",
        .product(name: "Plexus", package: "plexus"),
        .product(name: "PlexusInspector", package: "plexus"),
        .product(name: "PlexusNetworking", package: "plexus"),
        .product(name: "PlexusRedis", package: "plexus"),
        .product(name: "PlexusStorage", package: "plexus"),
        .product(name: "PlexusTesting", package: "plexus"),
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "OpenCombine", package: "OpenCombine"),
      ],
      swiftSettings: swiftSettings,
      linkerSettings: linkerSettings
    ),
    .executableTarget(
      name: "CostSheet",
      dependencies: [
        "BenchmarkRedis",
        .product(name: "Plexus", package: "plexus"),
        .product(name: "PlexusNetworking", package: "plexus"),
        .product(name: "PlexusRedis", package: "plexus"),
        .product(name: "PlexusSharedTesting", package: "plexus"),
        .product(name: "PlexusStorage", package: "plexus"),
        .product(name: "PlexusTesting", package: "plexus"),
      ],
      swiftSettings: swiftSettings,
      linkerSettings: linkerSettings
    ),
  ],
  swiftLanguageModes: [.v6]
)
