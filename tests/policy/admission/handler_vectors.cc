// vectors/admission: eviction_admit, sysctl, apparmor; vectors/eviction/admit.
#include "policy/admission/apparmor.h"
#include "policy/admission/pressure.h"
#include "policy/admission/reading.h"
#include "policy/admission/sysctls.h"
#include "support/vectors.h"

namespace spillway::admission {
namespace {

using api::Json;
using support::add_vector_check;
using support::compare;
using support::Mismatch;

Json wrapped(const Answer& answer) {
  return Json::object({{"result", result_of(answer)}});
}

Answer under_pressure(const Json& in, std::string_view member) {
  const std::vector<std::string> names = strings_at(in, member);
  const std::vector<std::string_view> conditions(names.begin(), names.end());
  return admit_under_pressure(conditions, pod_at(in));
}

std::optional<Mismatch> check_eviction_admit(const Json& row) {
  return compare(*row.find("want"), wrapped(under_pressure(*row.find("in"), "node_conditions")));
}

std::optional<Mismatch> check_admit(const Json& row) {
  const Json& in = *row.find("in");
  const api::Pod pod = pod_at(in);
  Json got = result_of(under_pressure(in, "nodeConditions"));
  got["critical"] = api::is_critical(pod);
  got["qosClass"] = api::to_string(api::qos_of(pod));
  return compare(*row.find("out"), got);
}

std::optional<Mismatch> check_sysctl(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const std::string_view op = row.string_at({"op"});
  if (op == "safe_list") {
    Json::Array safe;
    for (const std::string& name : safe_sysctls(in.string_at({"kernel"}))) safe.emplace_back(name);
    return compare(want, Json::object({{"safe", Json(std::move(safe))}}));
  }
  if (op == "new_allowlist") {
    const Result<SysctlAllowlist> list = SysctlAllowlist::parse(strings_at(in, "patterns"));
    Json got = Json::object({{"ok", list.has_value()}});
    if (!list) got["error"] = list.error().message;
    return compare(want, got);
  }
  std::vector<std::string> patterns = safe_sysctls(in.string_at({"kernel"}));
  for (std::string& allowed : strings_at(in, "allowed_unsafe")) patterns.push_back(std::move(allowed));
  const Result<SysctlAllowlist> list = SysctlAllowlist::parse(patterns);
  if (!list) return Mismatch{"a list", list.error().text()};
  return compare(want, wrapped(list->admit(pod_at(in).spec)));
}

std::optional<Mismatch> check_app_armor(const Json& row) {
  const Json& in = *row.find("in");
  return compare(*row.find("want"), wrapped(admit_app_armor(pod_at(in), in.string_at({"host_error"}))));
}

const bool kEvictionAdmit = add_vector_check("admission/eviction_admit", check_eviction_admit);
const bool kAdmit = add_vector_check("eviction/admit", check_admit);
const bool kSysctl = add_vector_check("admission/sysctl", check_sysctl);
const bool kAppArmor = add_vector_check("admission/apparmor", check_app_armor);

}  // namespace
}  // namespace spillway::admission
