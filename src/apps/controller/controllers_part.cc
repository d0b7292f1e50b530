#include "apps/controller/controllers_part.h"

#include <utility>

namespace spillway::apps {

ControllersPart::ControllersPart(runtime::Loop& loop, controllers::ControllerSet& set,
                                 std::unique_ptr<client::ApiEngine> engine,
                                 std::unique_ptr<client::Transport> transport, ControllerPages& pages,
                                 const cli::ControllerArgs& args)
    : EnginePart(loop, std::move(engine), std::move(transport)),
      set_(set),
      pages_(pages),
      command_(args.cloud_instance_check_command),
      limits_({.time_max = args.cloud_instance_check_timeout}),
      plugin_(loop, 1) {
  pages_.set_controllers(&set_, {});
  driver().after_step([this] {
    if (const auto nodes = set_.cloud_check().take_question()) ask_cloud(*nodes);
  });
}

void ControllersPart::ask_cloud(const std::vector<controllers::InstanceQuestion>& nodes) {
  const std::string query = api::to_text(controllers::instance_query(nodes)) + "\n";
  const bool taken =
      plugin_.submit([this, nodes, query, command = command_, limits = limits_]() -> runtime::Loop::Task {
        auto answer = host::exec_exchange(command, query, limits);
        return [this, nodes, answer = std::move(answer)] {
          on_cloud_answer(answer ? controllers::read_instance_answer(*answer, nodes)
                                 : Result<std::vector<controllers::InstanceAnswer>>(answer.error()));
        };
      });
  if (!taken)
    on_cloud_answer(make_error(ErrorCode::kTooManyRequests, "the previous cloud instance check is still running"));
}

/// The engine handles the answer in a step, so that the fence of the election applies.
void ControllersPart::on_cloud_answer(Result<std::vector<controllers::InstanceAnswer>> answer) {
  set_.cloud_check().put_answer(std::move(answer));
  driver().step([this](Now now) { engine().on_wakeup(now); });
}

void ControllersPart::stop(runtime::Loop::Task done) {
  pages_.set_controllers(nullptr, "the controllers are stopping");
  EnginePart::stop(std::move(done));
}

}  // namespace spillway::apps
