/// A form in which an image is decoded: in some size, or in a way that your decoder has a name for.
///
/// An ``ImageLoader`` downloads a file once for all its variants, and keeps one image in memory for each of them.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// func thumbnail(_ url: URL) -> MediaRequest {
///   MediaRequest(url, variant: ImageVariant(width: 120, height: 120))
/// }
/// ```
///
/// ## Topics
///
/// ### Creating a variant
/// - ``init(width:height:)``
/// - ``init(_:version:)``
///
/// ### Reading
/// - ``width``
/// - ``height``
/// - ``name``
/// - ``version``
///
/// ### Limits
/// - ``isValid``
/// - ``maximumSide``
public struct ImageVariant: Sendable, Hashable {
  private enum Kind: Sendable, Hashable {
    case size(width: Int, height: Int)
    case named(String, version: Int)
  }

  private let kind: Kind

  /// Creates a variant of the size of a view.
  ///
  /// Sides that are not positive, or larger than ``maximumSide``, make a variant whose requests fail with
  /// ``MediaError/invalidVariant(_:)``. The size of a view that has not been laid out is no reason to stop an app.
  ///
  /// - Parameters:
  ///   - width: The width of the view in pixels: its width in points times the scale of its screen.
  ///   - height: The height of the view in pixels.
  public init(width: Int, height: Int) {
    kind = .size(width: width, height: height)
  }

  /// Creates a variant with a name, for a decoder of your own.
  ///
  /// - Parameters:
  ///   - name: The name, such as `"avatar"`.
  ///   - version: The version of what the decoder makes. Another version is another variant.
  public init(_ name: String, version: Int = 1) {
    kind = .named(name, version: version)
  }

  /// The width in pixels; `nil` if the variant has a name.
  public var width: Int? {
    if case .size(let width, _) = kind { width } else { nil }
  }

  /// The height in pixels; `nil` if the variant has a name.
  public var height: Int? {
    if case .size(_, let height) = kind { height } else { nil }
  }

  /// The name; `nil` if the variant is one of some size.
  public var name: String? {
    if case .named(let name, _) = kind { name } else { nil }
  }

  /// The version of the decoder; `nil` if the variant is one of some size.
  public var version: Int? {
    if case .named(_, let version) = kind { version } else { nil }
  }

  /// The longest side of a variant in pixels, 32,768.
  public static let maximumSide = 32_768

  /// Whether it can be requested: both sides are positive and no longer than ``maximumSide``, or it has a name.
  public var isValid: Bool {
    guard case .size(let width, let height) = kind else { return true }
    return (1...Self.maximumSide).contains(width) && (1...Self.maximumSide).contains(height)
  }
}

extension ImageVariant: CustomStringConvertible {
  /// The size, such as `120 x 80`, or the name and the version, such as `avatar (1)`.
  public var description: String {
    switch kind {
    case .size(let width, let height): "\(width) x \(height)"
    case .named(let name, let version): "\(name) (\(version))"
    }
  }
}

extension ImageVariant {
  /// The number of bytes of an image that covers the view, four a pixel; `nil` if the variant has a name.
  var byteCount: Int? {
    guard case .size(let width, let height) = kind, isValid else { return nil }
    return 4 * width * height
  }

  /// Returns the longer side of the smallest copy of an image that covers the view, and is not larger than the image.
  ///
  /// A view that shows all of the image needs no more pixels than one that is filled by it.
  ///
  /// - Parameters:
  ///   - imageWidth: The width of the image in pixels, as it is shown.
  ///   - imageHeight: The height of the image.
  /// - Returns: The side in pixels; `nil` if the whole image is needed, or there is none.
  func longerSide(ofImage imageWidth: Int, by imageHeight: Int) -> Int? {
    guard case .size(let width, let height) = kind, isValid, width < imageWidth,
      height < imageHeight
    else { return nil }
    let longer = max(imageWidth, imageHeight)
    return [(width, imageWidth), (height, imageHeight)].map { wanted, present in
      // The quotient is less than the longer side.
      let side = present.dividingFullWidth(longer.multipliedFullWidth(by: wanted))
      return side.remainder > 0 ? side.quotient + 1 : side.quotient
    }.max()
  }
}
