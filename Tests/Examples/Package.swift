// swift-tools-version: 6.3
import PackageDescription

let package = Package(
  name: "Examples",
  platforms: [.macOS(.v15)],
  dependencies: [
    // In a package of your own: .package(url: "https://host/plexus.git", from: "1.0.0")
    .package(name: "plexus", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "Watch",
      dependencies: [
        .product(name: "Plexus", package: "plexus"),
        .product(name: "PlexusNetworking", package: "plexus"),
        .product(name: "PlexusStorage", package: "plexus"),
      ]
    ),
    .executableTarget(
      name: "Restaurant",
      dependencies: [.product(name: "Plexus", package: "plexus")]
    ),
  ]
)
