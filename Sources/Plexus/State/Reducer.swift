/// A function that applies an action to a state.
///
/// A reducer is called for one action at a time, on the dispatching thread, with no lock held. It should depend only on
/// its arguments. Actions that it dispatches itself are queued behind the current one.
public typealias Reducer<State, Action> = @Sendable (inout State, Action) -> Void
