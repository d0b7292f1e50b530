#include "apiserver/kinds/batch/job_tables.h"

#include "api/text/time_text.h"
#include "apiserver/kinds/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kJobColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Status", "string", "", 0, "How far it has come"},
    TableColumn{"Completions", "string", "", 0, "Pods that succeeded, of those that have to"},
    TableColumn{"Duration", "string", "", 0, "From its start to its completion, or to now"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"Containers", "string", "", 1, "Names of the containers in the template"},
    TableColumn{"Images", "string", "", 1, "Images of the containers in the template"},
    TableColumn{"Selector", "string", "", 1, "Label selector of the pods"}};

constexpr std::array kCronJobColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Schedule", "string", "", 0, "When it is due"},
    TableColumn{"Timezone", "string", "", 0, "Where that is so"},
    TableColumn{"Suspend", "boolean", "", 0, "Whether it makes no Jobs"},
    TableColumn{"Active", "integer", "", 0, "Its Jobs that are not over"},
    TableColumn{"Last Schedule", "string", "", 0, "Time since its last Job was due"},
    TableColumn{"Age", "string", "", 0, "Time since creation"},
    TableColumn{"Containers", "string", "", 1, "Names of the containers in the template"},
    TableColumn{"Images", "string", "", 1, "Images of the containers in the template"},
    TableColumn{"Selector", "string", "", 1, "Label selector of the pods"}};

bool has_condition(const api::Json& object, std::string_view type) {
  const api::Json* conditions = object.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return false;
  return std::ranges::any_of(*conditions->if_array(), [type](const api::Json& condition) {
    return condition.string_at({"type"}) == type && condition.string_at({"status"}) == "True";
  });
}

std::string_view job_status_text(const api::Json& object) {
  for (const std::string_view end : {"Complete", "Failed"}) {
    if (has_condition(object, end)) return end;
  }
  if (!object.string_at({"metadata", "deletionTimestamp"}).empty()) return "Terminating";
  for (const std::string_view stage : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (has_condition(object, stage)) return stage;
  }
  return "Running";
}

bool is_given(const api::Json* value) {
  return value != nullptr && !value->is_null();
}

std::string completions_text(const api::Json& object) {
  const std::int64_t succeeded = count_at(object, {"status", "succeeded"});
  if (is_given(object.at({"spec", "completions"}))) {
    return fmt::format("{}/{}", succeeded, count_at(object, {"spec", "completions"}));
  }
  const std::int64_t parallelism = count_at(object, {"spec", "parallelism"});
  return parallelism > 1 ? fmt::format("{}/1 of {}", succeeded, parallelism) : fmt::format("{}/1", succeeded);
}

std::string duration_text(const api::Json& object, WallTime now) {
  const auto start = api::parse_time(object.string_at({"status", "startTime"}));
  if (!start) return {};
  const auto end = api::parse_time(object.string_at({"status", "completionTime"}));
  return api::human_duration((end ? *end : now) - *start);
}

TableRow job_row(const api::Json& object, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "template", "spec"});
  return {{object.string_at({"metadata", "name"}), job_status_text(object), completions_text(object),
           duration_text(object, now), age_of(object, now), container_names(pod_spec), container_images(pod_spec),
           selector_text(object.at({"spec", "selector"}))},
          nullptr};
}

std::string suspend_text(const api::Json* suspend) {
  if (!is_given(suspend)) return "<unset>";
  return suspend->if_bool().value_or(false) ? "True" : "False";
}

TableRow cron_job_row(const api::Json& object, WallTime now) {
  const api::Json* pod_spec = object.at({"spec", "jobTemplate", "spec", "template", "spec"});
  const api::Json* active = object.at({"status", "active"});
  const bool lists = active != nullptr && active->if_array() != nullptr;
  const api::Json* last = object.at({"status", "lastScheduleTime"});
  return {{object.string_at({"metadata", "name"}), object.string_at({"spec", "schedule"}),
           or_else(object.string_at({"spec", "timeZone"}), kNone), suspend_text(object.at({"spec", "suspend"})),
           static_cast<std::int64_t>(lists ? active->if_array()->size() : 0),
           is_given(last) ? age_since(last, now) : std::string(kNone), age_of(object, now), container_names(pod_spec),
           container_images(pod_spec), selector_text(object.at({"spec", "jobTemplate", "spec", "selector"}))},
          nullptr};
}

}  // namespace

TableDefinition cron_job_table() {
  return {kCronJobColumns, cron_job_row};
}

TableDefinition job_table() {
  return {kJobColumns, job_row};
}

}  // namespace spillway::apiserver::kinds
