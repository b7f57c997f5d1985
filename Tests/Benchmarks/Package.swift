// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "plexus-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "plexus", path: "../..")],
  targets: [
    .executableTarget(
      name: "PlexusBenchmarks",
      dependencies: [
        .product(name: "Plexus", package: "plexus"),
        .product(name: "PlexusStorage", package: "plexus"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
      ]
    )
  ],
  swiftLanguageModes: [.v6]
)
