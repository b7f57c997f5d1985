/// The header fields of a message in order, with case-insensitive lookup.
public struct OriginHeaders: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// A name and a value.
  public struct Field: Hashable, Sendable {
    /// The name as it is sent.
    public let name: String

    /// The value without surrounding whitespace.
    public let value: String
  }

  /// All fields in order, including repeated names.
  public private(set) var fields: [Field] = []

  /// Creates an empty list of fields.
  public init() {}

  /// Creates fields from a literal such as `["Content-Type": "text/plain"]`.
  ///
  /// - Parameter elements: The names and values.
  /// - Precondition: Each name is a token, and each value is one line without control characters.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(name, value) }
  }

  /// The value of a field; the values of repeated fields are joined by commas.
  ///
  /// Setting a value replaces all fields of that name; setting `nil` removes them.
  ///
  /// - Parameter name: The name, case-insensitive.
  /// - Precondition: The name is a token, and the new value is one line without control characters.
  public subscript(name: String) -> String? {
    get {
      let values = values(of: name)
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
    set {
      let lowercased = name.lowercased()
      let position = fields.firstIndex { $0.name.lowercased() == lowercased } ?? fields.count
      fields.removeAll { $0.name.lowercased() == lowercased }
      if let newValue { insert(name: name, value: newValue, at: min(position, fields.count)) }
    }
  }

  /// Appends a field.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - value: The value.
  /// - Precondition: The name is a token, and the value is one line without control characters.
  public mutating func add(_ name: String, _ value: String) {
    insert(name: name, value: value, at: fields.count)
  }

  /// Returns the values of all fields with a name.
  ///
  /// - Parameter name: The name, case-insensitive.
  /// - Returns: The values in order.
  public func values(of name: String) -> [String] {
    let name = name.lowercased()
    return fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  private mutating func insert(name: String, value: String, at position: Int) {
    precondition(
      !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter),
      "A header field name must be a token of letters, digits and dashes, not \"\(name)\""
    )
    precondition(
      value.utf8.allSatisfy(\.isFieldCharacter),
      "The value of the header field \(name) must be one line without control characters"
    )
    fields.insert(Field(name: name, value: value), at: position)
  }
}

extension UInt8 {
  /// Whether the character is permitted in a method or a field name.
  var isTokenCharacter: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default:
      "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }

  /// Whether the character is permitted in a field value.
  var isFieldCharacter: Bool {
    self == UInt8(ascii: "\t") || (self >= 0x20 && self != 0x7F)
  }
}
