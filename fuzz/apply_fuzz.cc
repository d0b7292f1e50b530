// A JSON list of Pod configurations, applied one after another by three managers, by force: refused, or applied so that
// the same again changes nothing and the owners read back.
#include "api/patch/apply.h"
#include "api/patch/managed_fields.h"
#include "api/schema/typed.h"
#include "base/check.h"

#include <cstddef>
#include <cstdint>
#include <optional>

using namespace spillway;
using api::Json;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = api::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!input || !input->is_array()) return 0;
  static const api::Type& pod = *api::find_kind("v1", "Pod");
  constexpr std::size_t kManagers = 3;
  std::optional<Json> live;
  std::size_t step = 0;
  for (const Json& sent : *input->if_array()) {
    if (!sent.is_object()) continue;
    Json config = sent;
    config["apiVersion"] = "v1";
    config["kind"] = "Pod";
    const std::size_t manager = step++ % (kManagers + 1);
    const api::FieldWriter writer{fmt::format("m{}", manager), "", WallTime{seconds(step)}, {}};
    const Json* before = live ? &*live : nullptr;
    if (manager == kManagers) {  // an update in between
      const auto typed = api::read_body(pod, config);
      if (typed) live = api::track_update(pod, before, typed->object, writer);
      continue;
    }
    const auto applied = api::apply_config(pod, before, config, writer, api::Force::kYes);
    if (!applied) {
      SPILLWAY_CHECK(applied.error().code >= 400);
      continue;
    }
    const auto again = api::apply_config(pod, &*applied, config, writer, api::Force::kNo);
    SPILLWAY_CHECK(again && *again == *applied);
    const Json* owners = applied->at({"metadata", "managedFields"});
    SPILLWAY_CHECK(owners == nullptr || api::ManagedFields::parse(*owners)->to_json() == *owners);
    live = *applied;
  }
  return 0;
}
