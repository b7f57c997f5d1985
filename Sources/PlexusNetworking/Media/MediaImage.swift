#if canImport(SwiftUI)
public import SwiftUI

#if canImport(UIKit)
public import UIKit
#elseif canImport(AppKit)
public import AppKit
#endif

/// The state of a ``MediaImage``: the image to show, or the reason why there is none.
public struct MediaImagePhase<Image: Sendable>: Sendable {
  /// The image to show; `nil` before the first one, and after a failure.
  ///
  /// While the image of another request loads, it is that of the request before.
  public let image: Image?

  /// Whether the image of the present request is being loaded.
  public let isLoading: Bool

  /// The error of loading the image of the present request.
  public let error: (any Error)?
}

/// A view that loads an image and shows it.
///
/// An image in memory is there when the view is evaluated for the first time, without a placeholder in between. Otherwise
/// it is loaded while the view is on the screen: when the view leaves, or gets another request, it no longer waits, and
/// the loader cancels what no other caller waits for. The image of the request before stays until the new one is there
/// or has failed. A view that returns tries again what has failed.
///
///     MediaImage(MediaRequest(url, variant: ImageVariant(width: 240, height: 240))) { phase in
///       if let image = phase.image {
///         Image(uiImage: image).resizable()
///       } else if phase.error != nil {
///         Image(systemName: "photo")
///       } else {
///         ProgressView()
///       }
///     }
///
/// ## Topics
///
/// ### Creating a view
/// - ``init(_:by:content:)``
/// - ``body``
public struct MediaImage<Image: Sendable, Content: View>: View {
  private let request: MediaRequest?
  private let loader: ImageLoader<Image>
  private let content: (MediaImagePhase<Image>) -> Content
  @State private var state = MediaImageState<MediaRequest, Image>()

  /// Creates a view.
  ///
  /// - Parameters:
  ///   - request: The request; `nil` to show nothing yet.
  ///   - loader: The loader.
  ///   - content: A closure that makes the view of a phase.
  public init(
    _ request: MediaRequest?,
    by loader: ImageLoader<Image>,
    @ViewBuilder content: @escaping (MediaImagePhase<Image>) -> Content
  ) {
    self.request = request
    self.loader = loader
    self.content = content
  }

  /// The view of the present phase.
  public var body: some View {
    let shown = shown
    content(MediaImagePhase(image: shown.image, isLoading: shown.isLoading, error: shown.error))
      .task(id: request) { await load() }
  }

  /// The state for the present request, which the task takes over when the view has been shown.
  private var shown: MediaImageState<MediaRequest, Image> {
    state.showing(request) { loader.cachedImage(for: $0) }
  }

  private func load() async {
    if state.request != request { state = shown }
    guard let request, state.isMissing else { return }
    state.begin()
    do {
      let image = try await loader.request(request)
      state.finish(request, with: image)
    } catch {
      // The view has left, or shows another request.
      guard !Task.isCancelled else { return }
      state.finish(request, with: error)
    }
  }
}

#if canImport(UIKit)
extension MediaImage where Image == UIImage {
  /// Creates a view that loads its image with the loader of the process.
  ///
  /// - Parameters:
  ///   - request: The request; `nil` to show nothing yet.
  ///   - content: A closure that makes the view of a phase.
  public init(
    _ request: MediaRequest?,
    @ViewBuilder content: @escaping (MediaImagePhase<UIImage>) -> Content
  ) {
    self.init(request, by: .main, content: content)
  }
}
#elseif canImport(AppKit)
extension MediaImage where Image == NSImage {
  /// Creates a view that loads its image with the loader of the process.
  ///
  /// - Parameters:
  ///   - request: The request; `nil` to show nothing yet.
  ///   - content: A closure that makes the view of a phase.
  public init(
    _ request: MediaRequest?,
    @ViewBuilder content: @escaping (MediaImagePhase<NSImage>) -> Content
  ) {
    self.init(request, by: .main, content: content)
  }
}
#endif
#endif
