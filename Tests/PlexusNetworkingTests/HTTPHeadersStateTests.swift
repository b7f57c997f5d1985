import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `Header fields of an answer` {
  @Test func `header fields of an answer are found in any case, and joined by commas`() {
    var headers: HTTPHeaders = ["Vary": "A", "vary": "B", "ETag": "1"]
    #expect(headers["VARY"] == "A, B")
    #expect(headers["etag"] == "1")
    headers["Etag"] = nil
    #expect(headers == HTTPHeaders(["VARY": "A, B"]))
  }

  @Test func `header fields of an answer are those of a 304, where it has them`() {
    let old: HTTPHeaders = ["ETag": "1", "X": "a", "Content-Type": "a/b", "Kept": "k"]
    let new: HTTPHeaders = ["etag": "2", "x": "b", "content-type": "c/d", "New": "n"]
    #expect(
      old.updated(by: new) == [
        "ETag": "2", "X": "b", "Content-Type": "c/d", "Kept": "k", "New": "n",
      ]
    )
  }

  @Test func `a 304 does not update the header fields of the connection and of the coded body`() {
    let old: HTTPHeaders = [
      "Content-Length": "3", "Content-Encoding": "gzip", "Content-Range": "a", "X-Hop": "1",
    ]
    let new: HTTPHeaders = [
      "Content-Length": "0", "Content-Encoding": "br", "Content-Range": "b", "X-Hop": "2",
      "Connection": "close, X-Hop", "Keep-Alive": "1", "Transfer-Encoding": "chunked",
      "Proxy-Authenticate": "Basic", "Upgrade": "h2c", "TE": "trailers", "Trailer": "A",
    ]
    #expect(old.updated(by: new) == old)
  }

  @Test func `header fields of an answer have the age of a 304, or none`() {
    let stored: HTTPHeaders = ["Age": "30", "A": "1"]
    #expect(stored.updated(by: ["B": "2"]) == ["A": "1", "B": "2"])
    #expect(stored.updated(by: ["Age": "5"]) == ["A": "1", "Age": "5"])
  }

  @Test func `header fields of an answer have the date of a 304, or none`() {
    let stored: HTTPHeaders = ["Date": "Sun, 06 Nov 1994 08:49:37 GMT", "A": "1"]
    #expect(stored.updated(by: ["B": "2"]) == ["A": "1", "B": "2"])
    #expect(stored.updated(by: ["Date": "x"]) == ["A": "1", "Date": "x"])
  }
}
