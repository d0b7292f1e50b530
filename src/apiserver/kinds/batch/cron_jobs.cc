// CronJobs: a schedule, a zone, and the template of the Jobs.
#include "api/text/time_zone.h"
#include "apiserver/kinds/batch/batch_kinds.h"
#include "apiserver/kinds/batch/job_rules.h"
#include "apiserver/kinds/batch/job_tables.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/row_parts.h"
#include "base/ascii.h"
#include "policy/workloads/cron_schedule.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::array<std::string_view, 3> kConcurrencyPolicies{"Allow", "Forbid", "Replace"};
constexpr std::array<std::string_view, 2> kNotByHand{"nil", "false"};
constexpr std::size_t kCronNameMax = 52;  // names of its Jobs have eleven characters more

void default_cron_job(Json& object) {
  Json& spec = object.make({"spec"});
  if (!spec.is_object()) spec = Json::object();
  Json& jobs = spec.make({"jobTemplate", "spec"});
  if (!jobs.is_object()) jobs = Json::object();
  default_pod_template(jobs.make({"template"}));
  set_default(spec, "concurrencyPolicy", "Allow");
  if (!has(spec, "suspend")) spec["suspend"] = false;
  if (!has(spec, "successfulJobsHistoryLimit")) spec["successfulJobsHistoryLimit"] = 3;
  if (!has(spec, "failedJobsHistoryLimit")) spec["failedJobsHistoryLimit"] = 1;
}

bool names_zone(std::string_view schedule) {
  return schedule.find("TZ") != std::string_view::npos;
}

/// Time zones used to be allowed within the schedule: an object that has one may keep it.
void validate_schedule(const Json& spec, const Json& before, FieldErrors& errors) {
  const std::string_view schedule = text(spec, "schedule");
  if (schedule.empty()) return errors.required("spec.schedule");
  const auto parsed = workloads::CronSchedule::parse(schedule);
  if (!parsed) errors.invalid("spec.schedule", schedule, parsed.error().message);
  if (!names_zone(schedule)) return;
  if (!names_zone(text(before, "schedule"))) {
    errors.invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  } else if (has(spec, "timeZone")) {
    errors.invalid("spec.schedule", schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
  }
}

void validate_time_zone(const Json& spec, FieldErrors& errors) {
  if (!has(spec, "timeZone")) return;
  const std::string_view zone = text(spec, "timeZone");
  if (zone.empty()) return errors.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string");
  if (lower_case(zone) == "local") {
    errors.invalid("spec.timeZone", zone,
                   "timeZone must be an explicit time zone as defined in "
                   "https://www.iana.org/time-zones");
  }
  if (zone != "Local" && !api::TimeZone::find(zone)) {
    errors.invalid("spec.timeZone", zone, fmt::format("unknown time zone {}", zone));
  }
}

void validate_cron_spec(const Json& spec, const Json& before, FieldErrors& errors) {
  validate_schedule(spec, before, errors);
  if (!before.is_object() || value_of(before, "timeZone") != value_of(spec, "timeZone")) {
    validate_time_zone(spec, errors);
  }
  require_non_negative(spec, "startingDeadlineSeconds", "spec.startingDeadlineSeconds", errors);
  require_listed(spec, "concurrencyPolicy", "spec.concurrencyPolicy", kConcurrencyPolicies, errors);
  const Json& jobs = value_of(value_of(spec, "jobTemplate"), "spec");
  const Json& old_jobs = value_of(value_of(before, "jobTemplate"), "spec");
  validate_job_template_spec(jobs, old_jobs, "spec.jobTemplate.spec", errors);
  if (has(jobs, "selector")) {
    errors.invalid("spec.jobTemplate.spec.selector", value_of(jobs, "selector"), "`selector` will be auto-generated");
  }
  if (is_true(jobs, "manualSelector")) {
    errors.not_supported("spec.jobTemplate.spec.manualSelector", value_of(jobs, "manualSelector"), kNotByHand);
  }
  for (const std::string_view limit : {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    require_non_negative(spec, limit, fmt::format("spec.{}", limit), errors);
  }
}

void validate_cron_job(const Json& object, FieldErrors& errors) {
  validate_cron_spec(value_of(object, "spec"), Json(), errors);
  const std::string_view name = object.string_at({"metadata", "name"});
  if (name.size() > kCronNameMax) errors.invalid("metadata.name", name, "must be no more than 52 characters");
}

void validate_cron_job_update(const Json& object, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint == Endpoint::kStatus) return;
  validate_cron_spec(value_of(object, "spec"), value_of(old, "spec"), errors);
}

}  // namespace

Resource cron_job_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"cj"};
  const TableDefinition table = cron_job_table();
  static const KindHooks kHooks{.set_defaults = default_cron_job,
                                .validate_create = validate_cron_job,
                                .validate_update = validate_cron_job_update,
                                .columns = table.columns,
                                .table_row = table.row};
  return {.group = "batch",
          .version = "v1",
          .plural = "cronjobs",
          .singular = "cronjob",
          .kind = "CronJob",
          .verbs = kAllVerbs,
          .storage = below("cronjobs"),
          .short_names = kShortNames,
          .categories = kAllCategory,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .metadata = kChangeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
