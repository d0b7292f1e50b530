// State of Jobs that their status does not have, for the syncs to come. Thread: loop. Bounds: one memory per Job in the
// cache.
#pragma once

#include "base/time.h"
#include "policy/workloads/job_plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace spillway::controllers {

struct JobMemory {
  std::set<std::string> released;  // uids of pods without finalizer, which the cache shows with it
  workloads::JobBackoff backoff;
  std::optional<std::uint64_t> written_version;  // the version of a status that the cache does not show yet
  Instant syncs_paced_until{};                   // syncs that pods cause wait until then
};

/// The memories of the Jobs that the cache shows.
class JobMemories {
 public:
  /// Adds a memory for the Job, unless it has one.
  void add(const std::string& job_uid) { by_uid_.try_emplace(job_uid); }

  void erase(const std::string& job_uid) { by_uid_.erase(job_uid); }

  /// The memory of the Job; nullptr: the Job was deleted.
  JobMemory* find(const std::string& job_uid) {
    const auto found = by_uid_.find(job_uid);
    return found != by_uid_.end() ? &found->second : nullptr;
  }

 private:
  std::map<std::string, JobMemory> by_uid_;
};

}  // namespace spillway::controllers
