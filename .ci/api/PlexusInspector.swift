
final public class Inspector : Sendable {

    public let url: URL

    public convenience init(port: Int = 0, showsValues: Bool = false) async throws

    deinit

    public func remove(named name: String)

    public func stop() async
}

extension Inspector {

    public func add<Value>(_ multiplexer: Plexus.Multiplexer<Value>, named name: String) where Value : Sendable

    public func add<Key, Value>(_ map: Plexus.MultiplexerMap<Key, Value>, named name: String, describing: (@Sendable (Key) -> String)? = nil) where Key : Hashable, Key : Sendable, Value : Sendable

    public func add<Image>(_ loader: PlexusNetworking.ImageLoader<Image>, named name: String, describing: @escaping @Sendable (String) -> String = { $0 }) where Image : Sendable

    public func add(_ loader: PlexusNetworking.MediaLoader, named name: String, describing: @escaping @Sendable (String) -> String = { $0 })

    public func add(_ bus: Plexus.EventBus, named name: String)

    public func add<State, Action>(_ store: Plexus.Store<State, Action>, named name: String) where State : Sendable, Action : Sendable

    public func add(_ broadcaster: some Plexus.Broadcaster, named name: String)

    public func add(named name: String, _ snapshot: @escaping @Sendable () async -> String)
}

public enum InspectorError : Error, Hashable, Sendable {

    case invalidPort(Int)

    case portInUse(Int)

    case system(String)
}

extension InspectorError : CustomStringConvertible {

    public var description: String { get }
}

