import TestSupport
import Testing

/// The suites that run scenarios in every order of their jobs.
///
/// They come one after the other: a scenario has a thread for itself until it ends, and two of them at
/// once would leave none for the other tests on a machine with two cores.
@Suite(.fewAtOnce, .serialized) enum `Every order of jobs` {}
