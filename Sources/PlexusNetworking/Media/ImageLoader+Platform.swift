// The loader of the images of Apple's systems.

#if canImport(UIKit)
internal import CoreGraphics
internal import Foundation
internal import ImageIO
public import UIKit

extension ImageLoader where Image == UIImage {
  /// The loader of the whole process: 256 MB of images, prepared for display, from the files of
  /// ``MediaLoader/main``.
  ///
  /// A variant with a size is the smallest copy of the image that covers its view; the file is not decoded as a whole.
  public static let main = ImageLoader(
    capacity: .cost(256 << 20) { image in
      let (size, scale) = (image.size, image.scale)
      return Int(clamping: Int64(size.width * scale * size.height * scale * 4))
    }
  ) { data, response in
    if let variant = response.variant, let thumbnail = Thumbnail.image(of: data, variant) {
      return UIImage(cgImage: thumbnail)
    }
    guard let image = UIImage(data: data) else { throw URLError(.cannotDecodeContentData) }
    #if os(watchOS)
    return image
    #else
    return await image.byPreparingForDisplay() ?? image
    #endif
  }
}
#elseif canImport(AppKit)
public import AppKit
internal import CoreGraphics
internal import Foundation
internal import ImageIO

extension ImageLoader where Image == NSImage {
  /// The loader of the whole process: 256 MB of images from the files of ``MediaLoader/main``.
  ///
  /// A variant with a size is the smallest copy of the image that covers its view; the file is not decoded as a whole.
  public static let main = ImageLoader(
    capacity: .cost(256 << 20) { image in
      image.representations.map { $0.pixelsWide * $0.pixelsHigh * 4 }.max() ?? 0
    }
  ) { data, response in
    if let variant = response.variant, let thumbnail = Thumbnail.image(of: data, variant) {
      let size = CGSize(width: thumbnail.width, height: thumbnail.height)
      return NSImage(cgImage: thumbnail, size: size)
    }
    guard let image = NSImage(data: data) else { throw URLError(.cannotDecodeContentData) }
    return image
  }
}
#endif

#if canImport(UIKit) || canImport(AppKit)
/// Small copies of images.
private enum Thumbnail {
  /// Returns the smallest copy of an image that covers the view of a variant.
  ///
  /// - Parameters:
  ///   - data: The file.
  ///   - variant: The variant.
  /// - Returns: The copy, decoded and upright; `nil` if the whole image is needed, or the file is none.
  static func image(of data: Data, _ variant: ImageVariant) -> CGImage? {
    // The image that the file is decoded to would be kept with the source.
    let uncached = [kCGImageSourceShouldCache: false] as CFDictionary
    guard let source = CGImageSourceCreateWithData(data as CFData, uncached),
      let found = CGImageSourceCopyPropertiesAtIndex(source, 0, uncached) as? [CFString: Any],
      let width = found[kCGImagePropertyPixelWidth] as? Int,
      let height = found[kCGImagePropertyPixelHeight] as? Int
    else { return nil }
    // From 5 on, the image is shown turned by a quarter.
    let isTurned = (found[kCGImagePropertyOrientation] as? Int ?? 1) >= 5
    guard
      let side = variant.longerSide(
        ofImage: isTurned ? height : width,
        by: isTurned ? width : height
      )
    else { return nil }
    let options: [CFString: Any] = [
      kCGImageSourceCreateThumbnailFromImageAlways: true,
      kCGImageSourceCreateThumbnailWithTransform: true,
      kCGImageSourceShouldCacheImmediately: true,
      kCGImageSourceThumbnailMaxPixelSize: side,
    ]
    return CGImageSourceCreateThumbnailAtIndex(source, 0, options as CFDictionary)
  }
}
#endif
