#include "policy/outlook/outlook.h"

#include "api/text/time_text.h"
#include "policy/decision_json.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace spillway::outlook {

namespace {

using api::Json;

/// Names in the order of the enumerators.
constexpr auto kNames = std::to_array<std::string_view>({
    "being-deleted",
    "controller-says",
    "not-read",
    "job-complete",
    "job-failed",
    "job-ending",
    "job-managed-elsewhere",
    "job-suspended",
    "job-unseen",
    "job-no-parallelism",
    "job-pods-refused",
    "job-back-off",
    "job-pods-pending",
    "job-runs",
    "job-pods-leave",
    "job-makes-pods",
    "job-rests",
    "job-progress",
    "job-indexes",
    "job-failure-rule",
    "job-deadline",
    "job-leaves-at",
    "job-leaves-after",
    "job-kept-by-history",
    "job-stays",
    "cron-unknown-zone",
    "cron-unreadable",
    "cron-suspended",
    "cron-forbidden",
    "cron-missed",
    "cron-due",
    "cron-next",
    "cron-never",
    "cron-many-missed",
    "cron-unsupported-zone",
    "cron-last",
    "cron-never-ran",
    "cron-last-success",
    "cron-policy",
    "cron-history",
    "scale-unread",
    "scale-zero",
    "scale-selector",
    "scale-blind",
    "scale-out-of-range",
    "scale-changes",
    "scale-stabilized",
    "scale-limited",
    "scale-steady",
    "scale-unknown",
    "scale-standing",
    "scale-tolerance",
    "scale-last",
    "scale-window",
    "service-external-name",
    "service-no-selector",
    "service-no-match",
    "service-none-ready",
    "service-draining",
    "service-ready",
    "service-not-carried",
    "service-headless",
    "service-not-ready-published",
    "service-left-out",
    "service-port-missing",
    "service-behind",
    "service-slices",
    "service-no-ports",
    "pod-no-image",
    "pod-no-start",
    "pod-out-of-memory",
    "pod-crashes",
    "pod-container-failed",
    "pod-port-taken",
    "pod-evicted",
    "pod-failed",
    "pod-unschedulable",
    "pod-claim",
    "pod-unready",
    "workload-ready",
    "workload-zero",
    "workload-no-node",
    "workload-wants",
    "workload-waits",
    "workload-one-by-one",
    "claim-bound",
    "claim-binding",
    "claim-lost",
    "claim-waits",
    "claim-first-consumer",
    "claim-no-class",
    "claim-class-unknown",
    "claim-no-provisioner",
    "claim-provisioning",
    "claim-warning",
    "claim-size",
    "claim-unused",
    "node-no-status",
    "node-silent",
    "node-not-ready",
    "node-under-pressure",
    "node-near",
    "cluster-held",
});

static_assert(kNames.size() == static_cast<std::size_t>(kLastCode) + 1);

template <typename Values, typename Convert>
Json list_of(const Values& values, Convert convert) {
  Json list = Json::array();
  for (const auto& value : values) list.if_array()->push_back(convert(value));
  return list;
}

Json remark_json(const Remark& remark) {
  return Json::object({{"code", to_string(remark.code)}, {"facts", policy::to_json(remark.facts)}});
}

Json row_json(const Row& row) {
  return Json::object({{"name", row.name}, {"state", row.state}, {"facts", policy::to_json(row.facts)}});
}

Json part_json(const Part& part) {
  return Json::object({{"name", part.name}, {"total", part.total}, {"rows", list_of(part.rows, row_json)}});
}

}  // namespace

std::string_view to_string(Code code) {
  return kNames.at(static_cast<std::size_t>(code));
}

const Remark* find_remark(const Outlook& outlook, Code code) {
  const auto found = std::ranges::find(outlook.remarks, code, &Remark::code);
  return found == outlook.remarks.end() ? nullptr : &*found;
}

policy::Fact time_fact(std::string name, WallTime at) {
  return {std::move(name), api::format_time(at)};
}

void add_instant(std::vector<policy::Fact>& facts, std::string_view name, WallTime at, WallTime now) {
  facts.push_back(time_fact(std::string(name) + "_at", at));
  // Times in objects are written by users: nanoseconds do not span the whole calendar, so the difference is taken in
  // coarser units.
  const WallTime::duration left = std::max(at - now, WallTime::duration::zero());
  facts.push_back(
      {std::string(name) + "_seconds", std::int64_t{std::chrono::ceil<std::chrono::seconds>(left).count()}});
}

Json to_json(const Outlook& outlook) {
  return Json::object({{"at", api::format_micro_time(outlook.at)},
                       {"verdict", policy::to_string(outlook.verdict)},
                       {"subject", policy::to_json(outlook.subject)},
                       {"remarks", list_of(outlook.remarks, remark_json)},
                       {"parts", list_of(outlook.parts, part_json)}});
}

}  // namespace spillway::outlook
