// A scheduler with its transport, and the way to its extenders, as a part of a process. Thread: loop.
#pragma once

#include "apps/controller/scheduler_pages.h"
#include "apps/process/engine_part.h"
#include "controllers/scheduling/scheduler.h"
#include "wire/client/http_endpoint.h"
#include "wire/transport/extender_caller.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace spillway::apps {

/// A scheduler before it is started: `acting` is the engine that is driven, itself or behind a fence.
struct MadeScheduler {
  std::unique_ptr<client::ApiEngine> acting;
  controllers::Scheduler* scheduler = nullptr;  // within `acting`
  std::vector<scheduling::Extender> extenders;
  std::vector<wire::HttpEndpoint> endpoints;  // one for each extender
};

class SchedulerPart final : public EnginePart {
 public:
  /// `may_act`: called before every call of an extender; empty: always true. `pages` show this scheduler until it
  /// stops; may be nullptr.
  SchedulerPart(runtime::Loop& loop, MadeScheduler made, std::unique_ptr<client::Transport> transport,
                std::function<bool(Now)> may_act, SchedulerPages* pages = nullptr);

  void stop(runtime::Loop::Task done) override;

 private:
  void carry_out();

  runtime::Loop& loop_;
  controllers::Scheduler& scheduler_;
  std::vector<scheduling::Extender> extenders_;
  std::function<bool(Now)> may_act_;
  SchedulerPages* pages_;
  std::optional<wire::ExtenderCaller> caller_;  // nullopt: there are no extenders, or the scheduler has stopped
};

}  // namespace spillway::apps
