#include "apps/controller/scheduler_part.h"

#include "controllers/scheduling/extender_calls.h"

#include <cstddef>
#include <utility>

namespace spillway::apps {

namespace {

constexpr std::size_t kExtenderAnswerMax = std::size_t{64} << 20U;  // bytes; 5,000 whole nodes have about 50 MiB

constexpr Duration kAfterEngine = seconds(1);  // the engine gives up first, with a message

}  // namespace

SchedulerPart::SchedulerPart(runtime::Loop& loop, MadeScheduler made, std::unique_ptr<client::Transport> transport,
                             std::function<bool(Now)> may_act, SchedulerPages* pages)
    : EnginePart(loop, std::move(made.acting), std::move(transport)),
      loop_(loop),
      scheduler_(*made.scheduler),
      extenders_(std::move(made.extenders)),
      may_act_(std::move(may_act)),
      pages_(pages) {
  if (pages_ != nullptr) pages_->set_scheduler(&scheduler_, {});
  if (extenders_.empty()) return;
  caller_.emplace(loop_, std::move(made.endpoints), kExtenderAnswerMax);
  driver().after_step([this] { carry_out(); });
}

void SchedulerPart::stop(runtime::Loop::Task done) {
  if (pages_ != nullptr) pages_->set_scheduler(nullptr, "the scheduler is stopping");
  caller_.reset();
  EnginePart::stop(std::move(done));
}

void SchedulerPart::carry_out() {
  for (controllers::ExtenderCall& call : scheduler_.take_extender_calls()) {
    if (!caller_ || (may_act_ && !may_act_(loop_.now()))) continue;
    const scheduling::Extender& extender = extenders_[call.extender];
    caller_->call({.extender = call.extender,
                   .verb = scheduling::verb_of(extender, call.verb),
                   .body = std::move(call.body),
                   .timeout = extender.timeout + kAfterEngine,
                   .repeatable = call.verb != scheduling::ExtenderVerb::kBind},
                  [this, id = call.id](Result<api::Response> response) {
                    driver().step([this, id, response = std::move(response)](Now now) {
                      scheduler_.on_extender_answer(id, response, now);
                    });
                  });
  }
}

}  // namespace spillway::apps
