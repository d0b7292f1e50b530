#include "host/containers/credential_plugins.h"

#include "host/network/plugin_call.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kPluginMax = minutes(1);
constexpr std::size_t kQuestionsMax = 1'000;

PluginCall call_of(const agent::CredentialPlugin& plugin, const std::string& directory, const std::string& image) {
  PluginCall call{.program = fmt::format("{}/{}", directory, plugin.provider().name),
                  .arguments = plugin.provider().arguments,
                  .environment = {},
                  .input = plugin.request_for(image),
                  .time_max = kPluginMax};
  for (const auto& [name, value] : plugin.provider().environment)
    call.environment.push_back(fmt::format("{}={}", name, value));
  return call;
}

Result<std::string> output_of(const PluginCall& call) {
  SPILLWAY_TRY(answer, call_plugin(call));
  if (answer.code == 0) return std::move(answer.output);
  return make_error(ErrorCode::kInternalError, "exit code {}: {}", answer.code,
                    answer.errors.substr(0, answer.errors.find('\n')));
}

}  // namespace

CredentialPlugins::CredentialPlugins(runtime::Loop& loop, telemetry::Log log, std::string directory,
                                     std::vector<agent::CredentialProvider> providers)
    : loop_(loop), log_(std::move(log)), directory_(std::move(directory)), thread_(loop, kQuestionsMax) {
  for (agent::CredentialProvider& each : providers) plugins_.emplace_back(std::move(each));
}

void CredentialPlugins::ask(std::string image, Answer answer) {
  ask_next(Question{.image = std::move(image), .found = {}, .answer = std::move(answer)});
}

void CredentialPlugins::ask_next(Question question) {
  for (; question.next < plugins_.size(); ++question.next) {
    const agent::CredentialPlugin& plugin = plugins_[question.next];
    if (!plugin.is_for(question.image)) continue;
    const auto* kept = plugin.kept(question.image, loop_.now().mono);
    if (kept == nullptr) break;
    question.found.insert(question.found.end(), kept->begin(), kept->end());
  }
  if (question.next == plugins_.size()) return question.answer(std::move(question.found));
  PluginCall call = call_of(plugins_[question.next], directory_, question.image);
  auto waiting = std::make_shared<Question>(std::move(question));
  const bool queued = thread_.submit([this, waiting, call = std::move(call)]() -> runtime::Loop::Task {
    return [this, waiting, output = output_of(call)] { on_output(std::move(*waiting), output); };
  });
  if (!queued) on_output(std::move(*waiting), make_error(ErrorCode::kServiceUnavailable, "too many pulls wait for it"));
}

void CredentialPlugins::on_output(Question question, const Result<std::string>& output) {
  agent::CredentialPlugin& plugin = plugins_[question.next];
  auto answer = output ? plugin.on_answer(question.image, *output, loop_.now().mono)
                       : Result<std::vector<agent::PlacedCredential>>(output.error());
  if (answer) {
    question.found.insert(question.found.end(), answer->begin(), answer->end());
  } else {
    log_.warning("credential plug-in failed: the image is pulled without it",
                 {{"plugin", plugin.provider().name}, {"image", question.image}, {"error", answer.error().text()}});
  }
  ++question.next;
  ask_next(std::move(question));
}

}  // namespace spillway::host
