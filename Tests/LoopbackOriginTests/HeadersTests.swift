import LoopbackOrigin
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Header fields` {
  @Test func `header fields are found regardless of the case of their names`() {
    var headers: OriginHeaders = ["Content-Type": "text/plain"]
    #expect(headers["content-type"] == "text/plain")
    headers["CONTENT-TYPE"] = "image/png"
    #expect(headers.fields.count == 1)
    headers["content-Type"] = nil
    #expect(headers.fields.isEmpty)
    #expect(headers["Content-Type"] == nil)
  }

  @Test func `header fields can occur several times`() {
    var headers = OriginHeaders()
    headers.add("Set-Cookie", "a")
    headers.add("X", "y")
    headers.add("set-cookie", "b")
    #expect(headers.values(of: "Set-Cookie") == ["a", "b"])
    #expect(headers["Set-Cookie"] == "a, b")
    headers["Set-Cookie"] = "c"
    #expect(headers.fields.map(\.value) == ["c", "y"])
  }

  @Test(.startsProcess) func `header fields cannot break out of their line`() async {
    await #expect(processExitsWith: .failure) {
      let _: OriginHeaders = ["X": "a\r\nSet-Cookie: b"]
    }
    await #expect(processExitsWith: .failure) { let _: OriginHeaders = ["X Y": "a"] }
    await #expect(processExitsWith: .failure) { let _: OriginHeaders = ["": "a"] }
  }

  @Test(.startsProcess) func `a response has a status that ends an exchange`() async {
    await #expect(processExitsWith: .failure) { _ = OriginResponse(status: 100) }
    await #expect(processExitsWith: .failure) { _ = OriginResponse(status: 600) }
  }
}
