// The journal of an agent: every decision that acts, written before the act, so that it can be explained after the pod
// is gone and is finished, not repeated, after a crash. One JSON object per line.
// Thread: loop. Source: design, "Every decision is data with its reasons".
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "policy/eviction/decide.h"
#include "policy/reason.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

struct JournalEntry {
  WallTime at;
  std::string node;
  eviction::EvictPod action;
  bool emergency = false;  // no grace: the memory left would not have lasted that long
  bool intent = false;     // written by the thread that acts, before it acts; the entry with all reasons follows
  std::vector<policy::Reason> reasons;
  std::vector<eviction::Candidate> candidates;
};

/// One line without the newline.
std::string to_line(const JournalEntry& entry);
/// kInvalid: not a line that to_line wrote.
Result<JournalEntry> parse_line(std::string_view line);

/// Port: where entries go. append() returns when the bytes are with the kernel (write(2), no fsync).
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void append(const JournalEntry& entry) = 0;
};

}  // namespace spillway::agent
