internal import PlexusSupport

/// Whether variants of images have been requested: until then, no value is searched for those of its file.
final class VariantUse: Sendable {
  private let isUsed = Locked(false)

  /// Whether there can be variants.
  var areUsed: Bool { isUsed.withLock { $0 } }

  /// Returns the item of a request, of whose file there can be variants from now on.
  func item(of request: MediaRequest) -> MediaItem {
    if request.variant != nil { isUsed.withLock { $0 = true } }
    return MediaItem(request, hasVariant: true)
  }
}
