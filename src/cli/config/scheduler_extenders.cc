#include "cli/config/scheduler_extenders.h"

#include "api/text/base64.h"
#include "api/text/duration.h"
#include "api/text/names.h"
#include "api/text/resource_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using scheduling::Extender;
using yaml::Place;

constexpr std::int64_t kExtenderWeightMax = 1'000'000;
constexpr Duration kExtenderTimeoutMax = minutes(5);

Outcome read_text(const Place& around, std::string_view name, std::string& into) {
  SPILLWAY_TRY(text, around.optional_text(name));
  into = std::move(text);
  return {};
}

Outcome read_data(const Place& around, std::string_view name, std::string& into) {
  SPILLWAY_TRY(text, around.optional_text(name));
  auto decoded = api::decode_base64(text);
  if (!decoded) return around.member(name).wrong("expected base64");
  into = *std::move(decoded);
  return {};
}

Outcome read_flag(const Place& around, std::string_view name, bool& into) {
  SPILLWAY_TRY(flag, around.flag(name));
  into = flag.value_or(false);
  return {};
}

Outcome read_url(const Place& place, Extender& into) {
  SPILLWAY_TRY_VOID(read_text(place, "urlPrefix", into.url));
  const std::string_view url = into.url;
  const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  if (scheme == 0 || url.size() == scheme || url.find_first_of("?#@ \t\r\n") != std::string_view::npos) {
    const Place where = place.has("urlPrefix") ? place.member("urlPrefix") : place;
    return where.wrong(fmt::format("expected urlPrefix: http://HOST:PORT/PATH or https, got \"{}\"", url));
  }
  return {};
}

Outcome read_verbs(const Place& place, Extender& into) {
  const std::array<std::pair<std::string_view, std::string*>, 4> verbs{{{"filterVerb", &into.filter_verb},
                                                                        {"prioritizeVerb", &into.prioritize_verb},
                                                                        {"preemptVerb", &into.preempt_verb},
                                                                        {"bindVerb", &into.bind_verb}}};
  for (const auto& [name, verb] : verbs) {
    SPILLWAY_TRY_VOID(read_text(place, name, *verb));
    const bool fits = std::ranges::all_of(*verb, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
    if (!fits) return place.member(name).wrong("expected a path behind the URL, without blanks");
  }
  return {};
}

Outcome read_timeout(const Place& place, Extender& into) {
  SPILLWAY_TRY(text, place.optional_text("httpTimeout"));
  if (text.empty()) return {};
  const auto timeout = api::parse_duration(text);
  if (!timeout || *timeout < Duration::zero() || *timeout > kExtenderTimeoutMax) {
    return place.member("httpTimeout").wrong(fmt::format("expected a duration up to 5m, such as 5s, got \"{}\"", text));
  }
  if (*timeout > Duration::zero()) into.timeout = *timeout;  // 0s: the default
  return {};
}

Outcome read_tls(const Place& place, ExtenderTls& into) {
  SPILLWAY_TRY_VOID(place.check_members(
      {"insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"}));
  SPILLWAY_TRY_VOID(read_flag(place, "insecure", into.insecure));
  SPILLWAY_TRY_VOID(read_text(place, "serverName", into.server_name));
  SPILLWAY_TRY_VOID(read_text(place, "certFile", into.certificate_file));
  SPILLWAY_TRY_VOID(read_text(place, "keyFile", into.key_file));
  SPILLWAY_TRY_VOID(read_text(place, "caFile", into.ca_file));
  SPILLWAY_TRY_VOID(read_data(place, "certData", into.certificate_pem));
  SPILLWAY_TRY_VOID(read_data(place, "keyData", into.key_pem));
  SPILLWAY_TRY_VOID(read_data(place, "caData", into.ca_pem));
  const bool has_authority = !into.ca_file.empty() || !into.ca_pem.empty();
  if (into.insecure && has_authority) {
    return place.wrong("specifying a root certificates file with the insecure flag is not allowed");
  }
  const bool has_certificate = !into.certificate_file.empty() || !into.certificate_pem.empty();
  const bool has_key = !into.key_file.empty() || !into.key_pem.empty();
  if (has_certificate != has_key) return place.wrong("a certificate and its key are given together");
  return {};
}

/// Upstream's rules; `known`: the names of all extenders before.
Outcome read_resource(const Place& place, Extender& into, std::set<std::string>& known, ExtenderSet& all) {
  SPILLWAY_TRY_VOID(place.check_members({"name", "ignoredByScheduler"}));
  std::string name;
  SPILLWAY_TRY_VOID(read_text(place, "name", name));
  const Place at = place.has("name") ? place.member("name") : place;
  const std::vector<std::string> problems = api::qualified_name_errors(name);
  if (!problems.empty()) return at.wrong(problems.front());
  if (!api::is_extended_resource(name)) return at.wrong("is an invalid extended resource name");
  if (!known.insert(name).second) return at.wrong("duplicate extender managed resource name");
  bool ignored = false;
  SPILLWAY_TRY_VOID(read_flag(place, "ignoredByScheduler", ignored));
  if (ignored) all.ignored.push_back(name);
  into.resources.push_back(std::move(name));
  return {};
}

Outcome read_extender(const Place& place, std::set<std::string>& known, ExtenderSet& all) {
  SPILLWAY_TRY_VOID(place.check_members({"urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight",
                                         "bindVerb", "enableHTTPS", "tlsConfig", "httpTimeout", "nodeCacheCapable",
                                         "managedResources", "ignorable"}));
  Extender extender;
  ExtenderTls tls;
  tls.where = place.wrong("").text();
  while (tls.where.ends_with(' ') || tls.where.ends_with(':')) tls.where.pop_back();
  SPILLWAY_TRY_VOID(read_url(place, extender));
  SPILLWAY_TRY_VOID(read_verbs(place, extender));
  SPILLWAY_TRY(weight, place.number("weight", -kExtenderWeightMax, kExtenderWeightMax));
  extender.weight = weight.value_or(0);
  if (!extender.prioritize_verb.empty() && extender.weight <= 0) {
    return (place.has("weight") ? place.member("weight") : place).wrong("must have a positive weight applied to it");
  }
  SPILLWAY_TRY_VOID(read_timeout(place, extender));
  SPILLWAY_TRY_VOID(read_flag(place, "enableHTTPS", tls.enabled));
  if (place.has("tlsConfig")) SPILLWAY_TRY_VOID(read_tls(place.member("tlsConfig"), tls));
  SPILLWAY_TRY_VOID(read_flag(place, "nodeCacheCapable", extender.knows_nodes));
  SPILLWAY_TRY_VOID(read_flag(place, "ignorable", extender.ignorable));
  SPILLWAY_TRY_VOID(
      place.for_each("managedResources", [&](const Place& each) { return read_resource(each, extender, known, all); }));
  all.rules.push_back(std::move(extender));
  all.tls.push_back(std::move(tls));
  return {};
}

}  // namespace

Result<ExtenderSet> read_extenders(const Place& top) {
  ExtenderSet extenders;
  std::set<std::string> known;
  SPILLWAY_TRY_VOID(
      top.for_each("extenders", [&](const Place& each) { return read_extender(each, known, extenders); }));
  if (extenders.rules.size() > scheduling::kExtendersMax) {
    return top.member("extenders").wrong(fmt::format("more than {} extenders", scheduling::kExtendersMax));
  }
  const auto binders =
      std::ranges::count_if(extenders.rules, [](const Extender& extender) { return !extender.bind_verb.empty(); });
  if (binders > 1) {
    return top.member("extenders")
        .wrong(fmt::format("found {} extenders implementing bind: only one extender can implement bind", binders));
  }
  return extenders;
}

void ignore_managed(const ExtenderSet& extenders, std::vector<scheduling::Profile>& profiles) {
  if (extenders.ignored.empty()) return;
  for (scheduling::Profile& profile : profiles) profile.ignored.names = extenders.ignored;
}

}  // namespace spillway::cli
