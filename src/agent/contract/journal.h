// The journal of an agent: every decision that acts, written before the act, so that it can be explained after the pod
// is gone and is finished, not repeated, after a crash; and its result, added later. One JSON object per line. Thread:
// loop. Source: design, "Every decision is data with its reasons".
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/eviction/decide.h"
#include "policy/reason.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::agent {

/// Times of an eviction besides that of its decision. Not part of a line.
struct EvictionTimes {
  WallTime reading;                           // time of the measurements that led to the decision
  std::optional<Duration> reading_to_signal;  // set if the machine acted first
};

struct JournalEntry {
  policy::Decision decision;
  std::optional<eviction::EvictPod> eviction;  // the eviction to finish after a crash, if the decision is one
  bool emergency = false;                      // no grace: the memory left would not have lasted that long
  bool intent = false;  // written by the thread that acts, before it acts; the entry with all reasons follows
  std::optional<EvictionTimes> times = {};
};

/// The time from the decision until the pod had no process left.
inline constexpr std::string_view kGoneAfterFact = "gone_after_seconds";

/// The result of a decision, which is known later than the act.
struct Aftermath {
  std::string uid;  // the subject's
  WallTime at;
  std::vector<policy::Fact> facts;  // added to the cost in the decision
};

using JournalLine = std::variant<JournalEntry, Aftermath>;

/// One line without the newline.
std::string to_line(const JournalEntry& entry);
std::string to_line(const Aftermath& aftermath);
/// kInvalid: not a line that to_line wrote.
Result<JournalLine> parse_line(std::string_view line);

/// The entries of a journal's text, oldest first, with their results. Left out are lines that cannot be parsed, such as
/// one that a crash has cut off, and intents that are followed by their entry.
std::vector<JournalEntry> read_journal(std::string_view text);

/// Port: where lines go. append() returns when the bytes are with the kernel (write(2), no fsync).
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void append(const JournalLine& line) = 0;
};

}  // namespace spillway::agent
