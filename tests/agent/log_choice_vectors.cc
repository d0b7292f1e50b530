// vectors/pod-lifecycle: log_selection.
#include "agent/serving/log_choice.h"
#include "api/codec/codec.h"
#include "support/vectors.h"

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::optional<Mismatch> log_selection(const Json& row) {
  const Json& in = *row.find("in");
  Json document = Json::object();
  document.make({"metadata", "name"}) = "p";
  const std::string_view listed = in.string_at({"listedAs"}) == "init" ? "initContainerStatuses" : "containerStatuses";
  if (const Json* status = in.find("containerStatus"); status != nullptr && !status->is_null()) {
    document.make({"status", listed}) = Json::array({*status});
  }
  const api::Pod pod = api::decode<api::Pod>(document).value();
  const bool previous = in.find("previous")->if_bool().value();
  const Result<std::string> chosen = choose_log(pod, std::string(in.string_at({"container"})),
                                                previous ? LogInstance::kPrevious : LogInstance::kCurrent);
  const Json got =
      chosen ? Json::object({{"containerID", *chosen}}) : Json::object({{"error", chosen.error().message}});
  return support::compare(*row.find("want"), got);
}

const bool kLogSelection = support::add_vector_check("pod-lifecycle/log_selection", log_selection);

}  // namespace
}  // namespace spillway::agent
