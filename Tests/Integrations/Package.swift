// swift-tools-version: 6.3
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]

let plexus: Target.Dependency = .product(name: "Plexus", package: "plexus")
let plexusNetworking: Target.Dependency = .product(name: "PlexusNetworking", package: "plexus")
let plexusRedis: Target.Dependency = .product(name: "PlexusRedis", package: "plexus")
let plexusSharedTesting: Target.Dependency = .product(
  name: "PlexusSharedTesting",
  package: "plexus"
)
let plexusTesting: Target.Dependency = .product(name: "PlexusTesting", package: "plexus")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let lifecycle: Target.Dependency = .product(
  name: "ServiceLifecycle",
  package: "swift-service-lifecycle"
)
let signals: Target.Dependency = .product(
  name: "UnixSignals",
  package: "swift-service-lifecycle"
)
let algorithms: Target.Dependency = .product(
  name: "AsyncAlgorithms",
  package: "swift-async-algorithms"
)
let transport: [Target.Dependency] = [
  .product(name: "AsyncHTTPClient", package: "async-http-client"),
  .product(name: "NIOCore", package: "swift-nio"),
  .product(name: "NIOHTTP1", package: "swift-nio"),
  .product(name: "NIOPosix", package: "swift-nio"),
  "CZlib",
]

// The files of the libraries are those of the articles. They are internal, as in the program of a reader, so that the
// programs and tests that use them contain links to them.
let package = Package(
  name: "plexus-integrations",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "plexus", path: "../.."),
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.4"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .target(
      name: "Lifecycle",
      dependencies: [plexus, plexusRedis, logging, lifecycle],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "Telemetry",
      dependencies: [plexus, plexusRedis, logging, metrics, tracing, lifecycle],
      swiftSettings: swiftSettings
    ),
    .target(
      name: "Sequences",
      dependencies: [plexus, lifecycle, algorithms],
      swiftSettings: swiftSettings
    ),
    .systemLibrary(
      name: "CZlib",
      pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]
    ),
    .target(
      name: "Transport",
      dependencies: [plexusNetworking] + transport,
      swiftSettings: swiftSettings
    ),
    .target(
      name: "Storage",
      dependencies: [plexus, .product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "Node",
      dependencies: [
        plexus, plexusRedis, logging, metrics, tracing, lifecycle, signals,
        .product(name: "Hummingbird", package: "hummingbird"),
      ],
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "TransportComparison",
      dependencies: [plexusNetworking] + transport,
      swiftSettings: swiftSettings
    ),
    .executableTarget(
      name: "SQLiteWriter",
      dependencies: [plexus, .product(name: "GRDB", package: "GRDB.swift")],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "LifecycleTests",
      dependencies: [
        plexus, plexusRedis, plexusTesting, logging, lifecycle, signals,
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "TelemetryTests",
      dependencies: [
        plexus, plexusRedis, plexusTesting, logging, metrics, tracing, lifecycle, algorithms,
        .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "SequencesTests",
      dependencies: [plexus, plexusTesting, logging, lifecycle, algorithms],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "TransportTests",
      dependencies: [plexus, plexusNetworking, plexusTesting] + transport,
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "StorageTests",
      dependencies: [
        "SQLiteWriter", plexus, plexusSharedTesting, plexusTesting,
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: swiftSettings
    ),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "Node", .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      swiftSettings: swiftSettings
    ),
  ],
  swiftLanguageModes: [.v6]
)
