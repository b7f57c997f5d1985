/// The changes of a topic, each carried out by the engine as a whole.
enum TopicScripts {
  /// Reads information about streams.
  private static let information = RedisScript.text(PackageResources.information_lua)

  /// The functions that append entries.
  private static let common = information + RedisScript.text(PackageResources.appending_lua)

  /// The functions that read entries.
  private static let entries = RedisScript.text(PackageResources.entries_lua)

  /// The functions that measure entries.
  private static let sizes = RedisScript.text(PackageResources.sizes_lua)

  /// KEYS: stream, numbers of the node.
  ///
  /// ARGV: number of the batch, slot, known epoch, limit, channel; slot, number and first position of an earlier batch that
  /// the engine remembers unless it has lost it, the slot being empty if there is none; ms for which it remembers; 1 to remove
  /// messages that a group needs rather than to refuse others; then header and body of each message.
  ///
  /// Returns the first position, those of the further messages following it, then the number and the error of each message
  /// that was refused; the number is 0 for the announcement, which the stream does not depend on.
  ///
  /// A batch whose number the engine remembers is not appended again. Entries beyond the limit are removed,
  /// unless a group still needs them: beyond twice the limit, messages are refused, or the oldest ones are removed.
  static let publish = RedisScript("publishing", common, PackageResources.publish_lua)

  // MARK: - Groups
  //
  // The messages of a reader are the one in progress and later ones that it has read ahead, in order. The server's
  // counter of a message is the attempt that its reader makes or will make, so that reading ahead costs no command
  // and no attempt: of a reader that has died, only the first message was in progress. Messages that no reader has
  // belong to the consumer "released".

  private static let groups = RedisScript.text(PackageResources.groups_lua)

  /// KEYS: stream.
  ///
  /// ARGV: group.
  ///
  /// Returns the last position that the group has read, and the first position from that one on that the stream has.
  ///
  /// Reading by a group counts as a change, but not as reading. It is this look that makes the server announce the next
  /// message.
  static let surveyGroup = RedisScript(
    "reading by groups",
    information,
    PackageResources.survey_group_lua
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, ms without an answer, number of messages, number of bytes of all; number of bytes that a
  /// reply can have.
  ///
  /// Returns the id, the fields and the attempt of each message, and whether it is too large for a reply. The attempt is
  /// 0 for a message that was removed.
  static let claim = RedisScript(
    "reading by groups",
    entries + sizes + groups,
    PackageResources.claim_lua
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, 1 if no other node can have taken messages over, then the id of each message.
  ///
  /// Returns the ids of the messages that the consumer still has, and the ids that no consumer has
  /// although no other node can have handled them. One that was removed from the stream stays with the
  /// consumer until its time is over, and is then reported, too: claiming it would remove it from the group.
  static let renew = RedisScript("renewals of events", entries, PackageResources.renew_events_lua)

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, position, id of the message.
  ///
  /// A message in progress that is neither acknowledged nor rejected waits for its next attempt. After a restart with old
  /// data, the consumer can have received another one at the position.
  static let postpone = RedisScript(
    "returns of events",
    entries + groups,
    PackageResources.postpone_lua
  )

  /// KEYS: stream, key that is tracked by the group.
  ///
  /// ARGV: group, consumer, ms without an answer, then the id of each message.
  ///
  /// Gives back messages that were read ahead. Other consumers can claim them at once, and are woken.
  static let giveBack = RedisScript(
    "returns of events",
    entries + groups,
    PackageResources.give_back_lua
  )

  /// KEYS: stream, key that is tracked by the group.
  ///
  /// ARGV: group, consumer, ms without an answer, id of the message in hand or nothing.
  ///
  /// Other consumers can claim the messages at once, and are woken.
  static let leave = RedisScript(
    "returns of events",
    entries + groups,
    PackageResources.leave_group_lua
  )

  /// KEYS: stream.
  ///
  /// ARGV: group.
  ///
  /// Creates the group from the oldest message, removes consumers that were not heard of for an hour, and returns the id and
  /// the header of the message that was delivered last.
  static let join = RedisScript("joining groups", information + entries, PackageResources.join_lua)

  /// KEYS: stream.
  ///
  /// ARGV: group, position, id of the message; no id if it is not known.
  ///
  /// A server that was restarted with old data can have another message at the position.
  static let acknowledge = RedisScript(
    "acknowledgements",
    entries,
    PackageResources.acknowledge_lua
  )

  /// KEYS: stream, stream of the dead letters.
  ///
  /// ARGV: group, position, id of the message, reason, limit, channel of the dead letters, consumer; no id and no consumer
  /// if they are not known.
  ///
  /// A message that another consumer has taken over is left to that one.
  static let reject = RedisScript("dead letters", common + entries, PackageResources.reject_lua)

  // MARK: - Streams

  /// KEYS: stream.
  ///
  /// ARGV: position; that of the latest message if there is none.
  ///
  /// Returns the last position that the stream has had, and the header of the message at the position.
  static let survey = RedisScript(
    "reading of events",
    common + entries,
    PackageResources.survey_lua
  )

  /// KEYS: stream.
  ///
  /// ARGV: position, number of bytes that a reply can have.
  ///
  /// Returns what ``survey`` does, and the id and the fields of the next message, and whether it is too large.
  static let resume = RedisScript(
    "reading of events",
    common + entries + sizes,
    PackageResources.resume_lua
  )
}
