// The names and the rights of scripts are needed only for errors.

extension RedisScript {
  private static let purposes: [(script: RedisScript, purpose: String)] = [
    (TierScripts.look, "looks"), (TierScripts.fill, "fills"), (TierScripts.store, "stores"),
    (TierScripts.release, "releases of leases"), (TierScripts.renew, "renewals of leases"),
    (TierScripts.outdate, "refreshes"), (TierScripts.remove, "removals"),
    (TierScripts.removeTags, "removals by tag"), (TierScripts.removeAll, "removals of everything"),
    (TierScripts.fence, "clears"), (TierScripts.beat, "heartbeats"),
    (TierScripts.laggards, "clears"), (TierScripts.forget, "the end of registrations"),
    (TierScripts.leave, "the end of registrations"),
    (TopicScripts.publish, "publishing"), (TopicScripts.surveyGroup, "reading by groups"),
    (TopicScripts.claim, "reading by groups"), (TopicScripts.renew, "renewals of events"),
    (TopicScripts.postpone, "returns of events"), (TopicScripts.giveBack, "returns of events"),
    (TopicScripts.leave, "returns of events"), (TopicScripts.join, "joining groups"),
    (TopicScripts.acknowledge, "acknowledgements"), (TopicScripts.reject, "dead letters"),
    (TopicScripts.survey, "reading of events"), (TopicScripts.resume, "reading of events"),
  ]

  /// The kind of the script, for a sentence about it.
  var purpose: String {
    Self.purposes.first { $0.script === self }?.purpose ?? "scripts"
  }

  /// The commands that the script contains, in order of their names.
  var commands: [String] {
    var found: Set<String> = []
    for call in ["call('", "run('"] {
      for part in source.split(separator: call).dropFirst() {
        let words = part.split(separator: "'", maxSplits: 3, omittingEmptySubsequences: false)
        guard let name = words.first, name.allSatisfy(\.isUppercase) else { continue }
        // Some commands have rights of their own for each subcommand.
        let isContainer = name == "XGROUP" || name == "XINFO"
        found.insert(isContainer && words.count > 2 ? "\(name)|\(words[2])" : String(name))
      }
    }
    return found.sorted()
  }
}
