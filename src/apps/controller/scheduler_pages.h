// Pages of the scheduler: all waiting pods, and a single one. The server authorizes requests. Thread: loop.
#pragma once

#include "apps/controller/debug_pages.h"
#include "controllers/scheduling/scheduler.h"
#include "runtime/loop.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::apps {

inline constexpr std::string_view kWaitingPage = "/debug/spillway/waiting";

class SchedulerPages final : public DebugPages {
 public:
  explicit SchedulerPages(runtime::Loop& loop) : loop_(loop) {}

  /// nullptr: no scheduler runs here, for the reason `why`. The scheduler must outlive the pages or be replaced by
  /// nullptr.
  void set_scheduler(const controllers::Scheduler* scheduler, std::string why) {
    scheduler_ = scheduler;
    why_ = std::move(why);
  }

  /// Pages: waiting, waiting/NAMESPACE/NAME. nullopt: unknown page. 503: no scheduler runs here; 404: no such pod
  /// waits.
  std::optional<api::Response> answer(std::string_view path) const override;

 private:
  runtime::Loop& loop_;
  const controllers::Scheduler* scheduler_ = nullptr;
  std::string why_ = "the scheduler is starting";
};

}  // namespace spillway::apps
