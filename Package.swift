// swift-tools-version: 6.3
import PackageDescription

/// The settings of every target, tests included.
let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InferIsolatedConformances"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("ImmutableWeakCaptures"),
  .treatAllWarnings(as: .error),
  .treatWarning("ExplicitSendable", as: .error),
]

/// The settings of the libraries, whose unsafe code must say so.
let librarySettings: [SwiftSetting] = settings + [.strictMemorySafety()]

let package = Package(
  name: "plexus",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Plexus", targets: ["Plexus"]),
    .library(name: "PlexusStorage", targets: ["PlexusStorage"]),
    .library(name: "PlexusNetworking", targets: ["PlexusNetworking"]),
    .library(name: "PlexusTesting", targets: ["PlexusTesting"]),
    .library(name: "PlexusSharedTesting", targets: ["PlexusSharedTesting"]),
    .library(name: "PlexusRedis", targets: ["PlexusRedis"]),
    .library(name: "PlexusInspector", targets: ["PlexusInspector"]),
    .executable(name: "DepartureBoard", targets: ["DepartureBoard"]),
  ],
  traits: [
    .trait(
      name: "TLS",
      description: "Encrypted connections of PlexusRedis, by the OpenSSL of the system."
    )
  ],
  targets: [
    .target(name: "Plexus", dependencies: ["PlexusSupport"], swiftSettings: librarySettings),
    .target(name: "PlexusSupport", swiftSettings: librarySettings),
    .target(
      name: "PlexusStorage",
      dependencies: ["Plexus", "PlexusSupport"],
      swiftSettings: librarySettings
    ),
    .target(
      name: "PlexusNetworking",
      dependencies: ["Plexus", "PlexusSupport"],
      swiftSettings: librarySettings
    ),
    .target(
      name: "PlexusTesting",
      dependencies: ["PlexusSupport"],
      swiftSettings: librarySettings
    ),
    .target(
      name: "PlexusSharedTesting",
      dependencies: ["Plexus", "PlexusSupport"],
      swiftSettings: librarySettings
    ),
    .systemLibrary(
      name: "COpenSSL",
      pkgConfig: "openssl",
      providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]
    ),
    .target(
      name: "PlexusRedis",
      dependencies: [
        "Plexus", "PlexusSupport", .target(name: "COpenSSL", condition: .when(traits: ["TLS"])),
      ],
      resources: [.embedInCode("Lua")],
      swiftSettings: librarySettings
    ),
    .target(
      name: "PlexusInspector",
      dependencies: ["LoopbackOrigin", "Plexus", "PlexusNetworking", "PlexusSupport"],
      resources: [.embedInCode("Resources")],
      swiftSettings: librarySettings
    ),
    .target(
      name: "LoopbackOrigin",
      dependencies: ["PlexusSupport"],
      swiftSettings: librarySettings
    ),
    .executableTarget(
      name: "DepartureBoard",
      dependencies: [
        "LoopbackOrigin", "Plexus", "PlexusInspector", "PlexusNetworking", "PlexusRedis",
        "PlexusStorage",
      ],
      resources: [.process("Resources")],
      swiftSettings: settings
    ),
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
    .testTarget(
      name: "PlexusTests",
      dependencies: ["Plexus", "PlexusNetworking", "PlexusTesting", "TestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusInterleavingTests",
      dependencies: [
        "Plexus", "PlexusNetworking", "PlexusSharedTesting", "PlexusTesting", "TestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusStorageTests",
      dependencies: [
        "Plexus", "PlexusSharedTesting", "PlexusSupport", "PlexusStorage", "PlexusTesting",
        "TestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusNetworkingTests",
      dependencies: [
        "LoopbackOrigin", "Plexus", "PlexusNetworking", "PlexusSupport", "PlexusTesting",
        "TestSupport",
      ],
      swiftSettings: settings
    ),
    .executableTarget(
      name: "SharedNode",
      dependencies: ["Plexus", "PlexusRedis", "PlexusTesting"],
      path: "Tests/SharedNode",
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusRedisTests",
      dependencies: [
        "LoopbackOrigin", "Plexus", "PlexusRedis", "PlexusSharedTesting", "PlexusSupport",
        "PlexusTesting", "SharedNode", "TestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusSharedTests",
      dependencies: ["Plexus", "PlexusSharedTesting", "PlexusTesting", "TestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusTestingTests",
      dependencies: ["PlexusTesting", "TestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "LoopbackOriginTests",
      dependencies: ["LoopbackOrigin", "PlexusTesting", "TestSupport"],
      swiftSettings: settings
    ),
    .testTarget(
      name: "PlexusInspectorTests",
      dependencies: [
        "DepartureBoard", "LoopbackOrigin", "Plexus", "PlexusInspector", "PlexusNetworking",
        "PlexusTesting", "TestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "DepartureBoardTests",
      dependencies: [
        "DepartureBoard", "LoopbackOrigin", "Plexus", "PlexusNetworking", "PlexusRedis",
        "PlexusSharedTesting", "PlexusTesting", "TestSupport",
      ],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)

// One module of tests is built in half the time of all.
if let only = Context.environment["PLEXUS_TESTS"] {
  package.targets.removeAll { $0.type == .test && $0.name != only }
}
