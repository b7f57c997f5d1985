/// What an action does to a state.
///
/// A reducer is called for one action at a time, on the thread that dispatches, outside every lock. It
/// should depend on nothing but its arguments. Actions that it dispatches itself follow the one at hand.
public typealias Reducer<State, Action> = @Sendable (inout State, Action) -> Void
