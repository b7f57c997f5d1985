import PlexusSupport
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `File names` {
  private let names = FileNames(type: "Person")
  private let allowed = Set("abcdefghijklmnopqrstuvwxyz0123456789.-_~=".unicodeScalars)

  @Test(.guarantee(.fileNamesAreSafeAndUnique))
  func `each key has its own name of at most 120 safe bytes`() {
    var seen: [String: String] = [:]
    let letters = (0..<128).map { String(UnicodeScalar(UInt8($0))) }
    let pairs = letters.flatMap { first in letters.map { first + $0 } }
    for key in hostileKeys + letters + pairs where !key.unicodeScalars.isEmpty || key.isEmpty {
      let name = names.file(forKey: key)
      #expect(name.utf8.count <= 120)
      #expect(name.unicodeScalars.allSatisfy(allowed.contains))
      #expect(names.isEntry(name) && !names.isTemporary(name))
      // Names are already in lower case: different ones differ on every file system.
      let other = seen.updateValue(key, forKey: name)
      #expect(other.map { Array($0.utf8) == Array(key.utf8) } ?? true)
    }
  }

  @Test func `a plain key can be read in its name`() {
    #expect(names.file(forKey: "user-1.profile_x") == "person-6007db63.user-1.profile_x.json")
  }

  @Test func `a plain key with a namespace can be read in its name`() {
    #expect(names.file(forKey: "users/42") == "person-6007db63.users=42.json")
  }

  @Test func `another key has its beginning and its digest in its name`() {
    let digest = SHA256.hexadecimalDigest("User/1".utf8)
    #expect(names.file(forKey: "User/1") == "\(names.tag).~user-1-\(digest).json")
  }

  @Test(arguments: ["Int", "Array<Dictionary<String, Optional<Int>>>", "Ünïcode", ""])
  func `the tag of a type is short and safe`(type: String) {
    let names = FileNames(type: type)
    #expect(names.tag.utf8.count <= 25)
    for key in hostileKeys {
      let name = names.file(forKey: key)
      #expect(name.utf8.count <= 120 && name.unicodeScalars.allSatisfy(allowed.contains))
    }
    #expect(!names.isEntry(self.names.file(forKey: "a")))
  }

  @Test func `temporary files and logs are not mistaken for entries`() {
    #expect(names.isTemporary(names.temporary(.max)))
    #expect(!names.isEntry(names.temporary(0)) && !names.isEntry(names.log))
    #expect(!names.isTemporary(names.file(forKey: "x.tmp")))
    #expect(names.temporary(.max).utf8.count <= 120)
  }

  private enum Shop { struct Item {} }
  private enum Feed { struct Item {} }

  @Test func `file names distinguish types of one name, and are the same in every process`() {
    struct Item {}
    let types: [Any.Type] = [Shop.Item.self, Feed.Item.self, Item.self, [Feed.Item].self, Int.self]
    #expect(Set(types.map { FileNames($0).tag }).count == types.count)
    #expect(
      FileNames(Shop.Item.self).tag.hasPrefix("~item-")
        || FileNames(Shop.Item.self).tag.hasPrefix("item-")
    )
    // Private and local types have an address instead of the name of their context.
    #expect(String(reflecting: Item.self).contains("$"))
    for type in types { #expect(!FileNames.fullName(of: type).contains("$")) }
    #expect(FileNames.fullName(of: Int.self) == "Swift.Int")
  }
}
