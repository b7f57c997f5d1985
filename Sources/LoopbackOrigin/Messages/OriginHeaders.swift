/// The header fields of a message, in order, found by name whatever its case.
public struct OriginHeaders: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// A name and a value.
  public struct Field: Hashable, Sendable {
    /// The name, as it is sent.
    public let name: String

    /// The value, without spaces around it.
    public let value: String
  }

  /// All fields in order, names that occur several times included.
  public private(set) var fields: [Field] = []

  /// Creates a message without fields.
  public init() {}

  /// Creates fields from a literal such as `["Content-Type": "text/plain"]`.
  ///
  /// - Parameter elements: Names and values.
  /// - Precondition: Each is one line of text, and each name is one word.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(name, value) }
  }

  /// The value of a field; several of the same name are joined by commas.
  ///
  /// Setting it replaces all fields of that name, and `nil` removes them.
  ///
  /// - Parameter name: The name in any case.
  /// - Precondition: The new value is one line of text, and the name is one word.
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

  /// Adds a field after those that there are.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - value: The value.
  /// - Precondition: The value is one line of text, and the name is one word.
  public mutating func add(_ name: String, _ value: String) {
    insert(name: name, value: value, at: fields.count)
  }

  /// Returns the values of all fields with the given name.
  ///
  /// - Parameter name: The name in any case.
  /// - Returns: The values in order.
  public func values(of name: String) -> [String] {
    let name = name.lowercased()
    return fields.filter { $0.name.lowercased() == name }.map(\.value)
  }

  private mutating func insert(name: String, value: String, at position: Int) {
    precondition(
      !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter),
      "The name of a header field is one word of letters, digits and dashes, not \"\(name)\""
    )
    precondition(
      value.utf8.allSatisfy(\.isFieldCharacter),
      "The value of the header field \(name) must be one line without control characters"
    )
    fields.insert(Field(name: name, value: value), at: position)
  }
}

extension UInt8 {
  /// Whether the character may be part of a method or of the name of a header field.
  var isTokenCharacter: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default:
      "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }

  /// Whether the character may be part of the value of a header field.
  var isFieldCharacter: Bool {
    self == UInt8(ascii: "\t") || (self >= 0x20 && self != 0x7F)
  }
}
