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
  products: [],
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
      swiftSettings: librarySettings
    ),
    .target(name: "LoopbackOrigin", swiftSettings: librarySettings),
    .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
    .testTarget(
      name: "PlexusRedisTests",
      dependencies: [
        "LoopbackOrigin", "Plexus", "PlexusRedis", "PlexusSharedTesting", "PlexusSupport",
        "PlexusTesting", "TestSupport",
      ],
      swiftSettings: settings
    ),
  ],
  swiftLanguageModes: [.v6]
)
