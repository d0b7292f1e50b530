// vectors/workloads: quota_usage.
#include "api/codec/codec.h"
#include "api/text/time_text.h"
#include "policy/quota/charge.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace spillway::quota {
namespace {

using api::Json;
using support::Mismatch;

/// The object of a row, with its use of the quota.
struct Subject {
  CountedKind kind;
  std::optional<api::Pod> pod;
  api::ResourceList usage;
};

Result<Subject> subject_of(std::string_view kind, const Json& object, WallTime now) {
  if (kind == "Pod") {
    SPILLWAY_TRY(pod, api::decode<api::Pod>(object));
    return Subject{kPods, pod, usage_of(pod, now)};
  }
  if (kind == "Service") {
    SPILLWAY_TRY(service, api::decode<api::CountedService>(object));
    return Subject{kServices, std::nullopt, usage_of(service)};
  }
  SPILLWAY_TRY(claim, api::decode<api::CountedClaim>(object));
  return Subject{kClaims, std::nullopt, usage_of(claim)};
}

Json amounts_json(const api::ResourceList& amounts) {
  if (amounts.empty()) return {};
  Json list = Json::object();
  for (const auto& [name, amount] : amounts) list[name] = amount.to_string();
  return list;
}

std::optional<Mismatch> check_quota(const Json& row) {
  const Json& in = *row.find("in");
  const auto now = api::parse_time(in.string_at({"now"}));
  if (!now) return Mismatch{"now is a time", now.error().text()};
  std::vector<api::ResourceQuota> quotas;
  for (const Json& each : *in.find("quotas")->if_array()) {
    auto quota = api::decode<api::ResourceQuota>(each);
    if (!quota) return Mismatch{"quota decodes", quota.error().text()};
    quotas.push_back(*std::move(quota));
  }
  const std::string_view kind = in.string_at({"kind"});
  const auto subject = subject_of(kind, *in.find("object"), *now);
  if (!subject) return Mismatch{"object decodes", subject.error().text()};
  const api::Pod* pod = subject->pod ? &*subject->pod : nullptr;
  Json got = Json::object();
  if (row.string_at({"op"}) == "usage") {
    got["usage"] = amounts_json(subject->usage);
    got["quota_matches"] = Json::array();
    for (const api::ResourceQuota& each : quotas) {
      got["quota_matches"].if_array()->emplace_back(matches(each, subject->kind, pod));
    }
    return support::compare(*row.find("want"), got);
  }
  Request request{subject->kind, pod, subject->usage, {}};
  if (const Json* old = in.find("old")) {
    const auto before = subject_of(kind, *old, *now);
    if (!before) return Mismatch{"old object decodes", before.error().text()};
    request.before = before->usage;
  }
  const auto raised = charge(quotas, request);
  if (!raised) {
    got["error"] = fmt::format("{} \"{}\" is forbidden: {}", subject->kind.plural,
                               in.string_at({"object", "metadata", "name"}), raised.error().message);
    return support::compare(*row.find("want"), got);
  }
  for (const Raised& each : *raised) quotas[each.quota].status.used = each.used;
  got["used"] = Json::array();
  for (const api::ResourceQuota& each : quotas) got["used"].if_array()->push_back(amounts_json(each.status.used));
  return support::compare(*row.find("want"), got);
}

const bool kQuotas = support::add_vector_check("workloads/quota_usage", check_quota);

}  // namespace
}  // namespace spillway::quota
