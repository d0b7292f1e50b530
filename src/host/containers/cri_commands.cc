#include "host/containers/cri_commands.h"

#include "api/text/base64.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;

constexpr Duration kExecSlack = minutes(2);
constexpr Duration kExecMax = minutes(60);  // limit of a command without a timeout

}  // namespace

/// A runtime that answers ends the command by itself after its timeout.
void CriCommands::run(const agent::RunInContainer& command) {
  const CriContainer* container = pods_.find_container(command.uid, command.container);
  if (container == nullptr || !container->running)
    return host_.events.emit(agent::RanInContainer{
        command.id, make_error(ErrorCode::kNotFound, "container \"{}\" does not run", command.container), {}});
  Json request = Json::object({{"container_id", container->id}, {"cmd", Json::array()}});
  for (const std::string& each : command.argv) request["cmd"].if_array()->emplace_back(each);
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(command.timeout).count();
  if (timeout > 0) request["timeout"] = std::int64_t{timeout};
  const Duration deadline = timeout > 0 ? command.timeout + kExecSlack : kExecMax;
  host_.calls.call("ExecSync", std::move(request), deadline,
                   [this, id = command.id](const Result<Json>& ran) { on_ran(id, ran); });
}

void CriCommands::on_ran(std::uint64_t id, const Result<Json>& ran) {
  agent::RanInContainer answer{.id = id, .exit_code = 0, .output = {}};
  if (ran) {
    answer.exit_code = static_cast<std::int32_t>(number_in(*ran, {"exit_code"}));
    for (const std::string_view stream : {"stdout", "stderr"})
      answer.output += api::decode_base64(ran->string_at({stream})).value_or("");
    if (answer.output.size() > agent::kCommandOutputMax) answer.output.resize(agent::kCommandOutputMax);
  } else {
    answer.timed_out = ran.error().code == ErrorCode::kTimeout;
    answer.exit_code = Error{ran.error().code, rpc_text(ran.error()), {}};
  }
  host_.events.emit(std::move(answer));
}

}  // namespace spillway::host
