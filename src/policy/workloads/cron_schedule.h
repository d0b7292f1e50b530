// The schedule of a CronJob: computes its next due time. Thread: any (pure; zones are tables). Bounds: searches five
// years ahead. Source: Kubernetes docs, "CronJob", "Schedule syntax"; crontab(5); spec "Scheduler and workloads", 15;
// vectors workloads/cron_next.
#pragma once

#include "api/text/time_zone.h"
#include "base/error.h"
#include "base/time.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::workloads {

class CronSchedule {
 public:
  /// "*/5 9-17 * * MON", "@daily", "@every 90m"; "TZ=ZONE …" overrides the zone. kInvalid: what is wrong with it.
  static Result<CronSchedule> parse(std::string_view text, const api::TimeZone& zone = {});

  /// The first scheduled time after `after`; nullopt: none within five years.
  std::optional<WallTime> next(WallTime after) const;

 private:
  /// The values that a field allows, as bits; `any`: written as a star without a step.
  struct Field {
    std::uint64_t bits = 0;
    bool any = false;
  };

  class Walk;
  friend class Parser;

  Field minute_;
  Field hour_;
  Field day_;
  Field month_;
  Field weekday_;  // Sunday is 0
  Duration every_{};
  api::TimeZone zone_;
};

}  // namespace spillway::workloads
