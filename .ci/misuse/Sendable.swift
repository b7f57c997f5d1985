import Plexus

final class NotSendable {}  // expected-note 4{{class 'NotSendable' does not conform to the 'Sendable' protocol}}

func misuse() {
  _ = Messenger<NotSendable>()  // expected-error 2{{type 'NotSendable' does not conform to the 'Sendable' protocol}}
  _ = DataPublisher<NotSendable>()  // expected-error 2{{type 'NotSendable' does not conform to the 'Sendable' protocol}}
}
