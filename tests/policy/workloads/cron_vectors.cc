// vectors/workloads: cron_next.
#include "api/codec/codec.h"
#include "api/object/job.h"
#include "api/text/time_text.h"
#include "policy/workloads/cron_plan.h"
#include "support/vectors.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway::workloads {
namespace {

using api::Json;
using support::Mismatch;

std::int64_t whole_milliseconds(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

WallTime time_in(const Json& in, std::string_view member) {
  return api::parse_time(in.string_at({member})).value();
}

std::optional<Mismatch> check_next(const Json& in, const Json& want) {
  const Json* zone = in.find("timeZone");
  const auto found = zone != nullptr ? api::TimeZone::find(*zone->if_string()) : api::TimeZone();
  const auto schedule = CronSchedule::parse(in.string_at({"schedule"}), found.value());
  Json got = Json::object();
  if (!schedule) {
    got["error"] = schedule.error().message;
  } else {
    Json times = Json::array();
    std::optional<WallTime> at = time_in(in, "from");
    for (int i = 0; i < 6 && at; ++i) {
      at = schedule->next(*at);
      if (at) times.if_array()->push_back(api::format_time(*at));
    }
    got["next"] = std::move(times);
  }
  return support::compare(want, got);
}

std::optional<Mismatch> check_missed(const Json& in, const Json& want) {
  const api::CronJob cron = api::decode<api::CronJob>(*in.find("cronjob")).value();
  const WallTime now = time_in(in, "now");
  const CronSchedule schedule = schedule_of(cron).value();
  const auto due = due_start(cron, schedule, LateStarts::kForgotten, now);
  Json got = Json::object();
  if (!due) {
    got["error"] = due.error().message;
  } else {
    constexpr std::string_view kWords[] = {"none", "few", "many"};
    got["earliest"] = api::format_time(due->earliest);
    got["missed"] = kWords[static_cast<int>(due->missed)];
    if (due->latest) got["scheduled"] = api::format_time(*due->latest);
  }
  got["sync_again_ms"] = whole_milliseconds(until_next_start(cron, schedule, now));
  return support::compare(want, got);
}

/// Carries out a plan as the controller does when every call succeeds.
class CarriedOut {
 public:
  CarriedOut(const api::CronJob& cron, CronPlan plan) : cron_(cron), plan_(std::move(plan)) {
    for (const JobEvent& event : plan_.events) record_event(event.type, event.reason, event.message);
    for (const api::ObjectReference& job : plan_.replaced) remove(job.name, job.uid);
    if (plan_.due) create();
    for (const JobPtr& job : plan_.outlived) remove(job->metadata.name, job->metadata.uid);
  }

  Json row() const {
    Json row = Json::object({{"status_changed", changed_ || plan_.status_changed}});
    if (!events_.if_array()->empty()) row["events"] = events_;
    if (!deleted_.empty()) {
      Json names = Json::array();
      for (const std::string& name : deleted_) names.if_array()->push_back(name);
      row["delete"] = std::move(names);
    }
    if (!created_.is_null()) row["create"] = created_;
    api::CronJob written;
    written.status = plan_.status;
    const Json document = api::encode(written);
    if (const Json* status = document.find("status"); status != nullptr) row["status"] = *status;
    if (plan_.requeue_after) row["sync_again_ms"] = whole_milliseconds(*plan_.requeue_after);
    return row;
  }

 private:
  void record_event(std::string_view type, std::string_view reason, std::string_view message) {
    events_.if_array()->push_back(Json::object({{"type", type}, {"reason", reason}, {"message", message}}));
  }

  void remove(const std::string& name, const std::string& uid) {
    deleted_.push_back(name);
    record_gone(plan_.status, uid);
    changed_ = true;
    record_event("Normal", "SuccessfulDelete", "Deleted job " + name);
  }

  void create() {
    const Json document = cron_job_document(cron_, *plan_.due);
    const std::string name(document.string_at({"metadata", "name"}));
    created_ = Json::object({{"name", name},
                             {"annotations", *document.at({"metadata", "annotations"})},
                             {"ownerReferences", Json::array({Json::object({{"apiVersion", "batch/v1"},
                                                                            {"blockOwnerDeletion", true},
                                                                            {"controller", true},
                                                                            {"kind", "CronJob"},
                                                                            {"name", cron_.metadata.name},
                                                                            {"uid", cron_.metadata.uid}})})}});
    if (const Json* labels = document.at({"metadata", "labels"}); !labels->if_object()->empty()) {
      created_["labels"] = *labels;
    }
    record_started(plan_.status,
                   {.kind = "Job", .api_version = "batch/v1", .ns = cron_.metadata.ns, .name = name, .uid = "new-uid"},
                   *plan_.due);
    changed_ = true;
    record_event("Normal", "SuccessfulCreate", "Created job " + name);
  }

  const api::CronJob& cron_;
  CronPlan plan_;
  Json events_ = Json::array();
  std::vector<std::string> deleted_;
  Json created_;
  bool changed_ = false;
};

std::optional<Mismatch> check_sync_of_cron(const Json& in, const Json& want) {
  const api::CronJob cron = api::decode<api::CronJob>(*in.find("cronjob")).value();
  CronView view{cron, {}, {}};
  if (const Json* jobs = in.find("jobs"); jobs != nullptr && jobs->is_array()) {
    for (const Json& job : *jobs->if_array()) {
      view.jobs.push_back(std::make_shared<const api::Job>(api::decode<api::Job>(job).value()));
    }
  }
  return support::compare(want, CarriedOut(cron, plan_cron(view, time_in(in, "now"))).row());
}

std::optional<Mismatch> check_cron(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  if (row.string_at({"op"}) == "next") return check_next(in, want);
  if (row.string_at({"op"}) == "missed") return check_missed(in, want);
  return check_sync_of_cron(in, want);
}

const bool kCronRows = support::add_vector_check("workloads/cron_next", check_cron);

}  // namespace
}  // namespace spillway::workloads
