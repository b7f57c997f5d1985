import Plexus

/// Creates a map of people that are tagged with their ages, and whose stored copies are read before a fetch.
func taggedPeople(
  _ cacher: any Cacher<Person>,
  fetch: @escaping @concurrent @Sendable (String) async throws -> Person
) -> MultiplexerMap<String, Person> {
  var policy = CachePolicy()
  policy.cacherRead = .beforeFetch
  return MultiplexerMap(
    id: "people",
    policy: policy,
    cacher: cacher,
    valueTagging: { _, person in [CacheTag("age:\(person.age ?? 0)")] },
    onKeyFetch: fetch
  )
}
