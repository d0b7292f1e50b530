#include "cli/config/limited_resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::cli {
namespace {

using api::Json;
using api::ResourceQuota;

constexpr std::string_view kVersions[] = {"apiserver.config.k8s.io/v1"};
/// Versions whose kind is Configuration.
constexpr std::string_view kOlderVersions[] = {"resourcequota.admission.k8s.io/v1beta1",
                                               "resourcequota.admission.k8s.io/v1alpha1"};
constexpr std::string_view kScopes[] = {ResourceQuota::kTerminating,   ResourceQuota::kNotTerminating,
                                        ResourceQuota::kBestEffort,    ResourceQuota::kNotBestEffort,
                                        ResourceQuota::kPriorityClass, ResourceQuota::kCrossNamespaceAffinity};
constexpr std::string_view kListOperators[] = {"In", "NotIn"};
constexpr std::string_view kPlainOperators[] = {"Exists", "DoesNotExist"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// One of matchScopes.
api::QuotaScope read_scope(AdmissionSource& source, const Json& value, const AdmissionPlace& place) {
  constexpr std::string_view kMembers[] = {"scopeName", "operator", "values"};
  api::QuotaScope scope;
  if (!source.is_mapping(value, place, kMembers)) return scope;
  scope = {.scope = source.string(value, place, "scopeName"),
           .op = source.string(value, place, "operator"),
           .values = source.strings(value, place, "values")};
  if (!is_one_of(scope.scope, kScopes)) {
    source.wrong(place.member("scopeName"), fmt::format("expected one of {}", fmt::join(kScopes, ", ")));
  }
  const bool listed = is_one_of(scope.op, kListOperators);
  if (!listed && !is_one_of(scope.op, kPlainOperators)) {
    source.wrong(place.member("operator"), "expected one of In, NotIn, Exists, DoesNotExist");
  } else if (scope.scope != ResourceQuota::kPriorityClass && scope.op != "Exists") {
    source.wrong(place.member("operator"), fmt::format("must be Exists with scope {}", scope.scope));
  } else if (listed == scope.values.empty()) {
    source.wrong(place.member("values"), listed ? "must not be empty" : "must be empty");
  }
  return scope;
}

/// One of limitedResources.
quota::LimitedResource read_limited(AdmissionSource& source, const Json& value, const AdmissionPlace& place) {
  constexpr std::string_view kMembers[] = {"apiGroup", "resource", "matchContains", "matchScopes"};
  quota::LimitedResource limited;
  if (!source.is_mapping(value, place, kMembers)) return limited;
  limited.group = source.string(value, place, "apiGroup");
  limited.plural = source.string(value, place, "resource");
  if (limited.plural.empty()) source.wrong(place.member("resource"), "Required value");
  limited.contains = source.strings(value, place, "matchContains");
  const auto scopes = source.elements(value, place, "matchScopes");
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    limited.scopes.push_back(read_scope(source, scopes[i], place.member("matchScopes").element(i)));
  }
  return limited;
}

}  // namespace

void read_limited_resources(AdmissionSource& source, const Json& value, const AdmissionPlace& place,
                            std::vector<quota::LimitedResource>& into) {
  constexpr std::string_view kMembers[] = {"apiVersion", "kind", "limitedResources"};
  if (!source.is_mapping(value, place, kMembers)) return;
  if (is_one_of(value.string_at({"apiVersion"}), kOlderVersions)) {
    source.check_kind(value, place, "Configuration", kOlderVersions);
  } else {
    source.check_kind(value, place, "ResourceQuotaConfiguration", kVersions);
  }
  const auto list = source.elements(value, place, "limitedResources");
  for (std::size_t i = 0; i < list.size(); ++i) {
    into.push_back(read_limited(source, list[i], place.member("limitedResources").element(i)));
  }
}

}  // namespace spillway::cli
