// The files of vectors/lifecycle that run a whole cluster, with the controller that ships.
#include "controllers/cluster_model.h"
#include "support/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using support::Mismatch;

/// Rates as text, so that they compare as single-precision numbers; actions of one instant in the model's order.
Json normalized(const Json& expected) {
  Json result = expected;
  for (Json& action : *result.find("actions")->if_array()) {
    Json::Array& fields = *action.if_array();
    if (*fields[1].if_string() == "zone") fields[4] = fmt::format("{}", static_cast<float>(*fields[4].if_double()));
  }
  return result;
}

std::string_view kind_of(const Json& action) {
  return *(*action.if_array())[1].if_string();
}

void sort_within_kind(Json& result) {
  Json::Array& actions = *result.find("actions")->if_array();
  const auto same_group = [](const Json& a, const Json& b) {
    return (*a.if_array())[0] == (*b.if_array())[0] && kind_of(a) == kind_of(b);
  };
  for (auto first = actions.begin(); first != actions.end();) {
    const auto last =
        std::find_if_not(first, actions.end(), [&](const Json& each) { return same_group(*first, each); });
    std::sort(first, last, [](const Json& a, const Json& b) { return api::to_text(a) < api::to_text(b); });
    first = last;
  }
}

std::optional<Mismatch> first_difference(const Json& want, const Json& got) {
  const Json::Array& a = *want.find("actions")->if_array();
  const Json::Array& b = *got.find("actions")->if_array();
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string wanted = i < a.size() ? api::to_text(a[i]) : "end of actions";
    const std::string found = i < b.size() ? api::to_text(b[i]) : "end of actions";
    if (wanted != found) return Mismatch{fmt::format("action {}: {}", i, wanted), found};
  }
  return support::compare(want, got);
}

std::optional<Mismatch> simulate(const Json& row) {
  Json want = normalized(*row.find("expected"));
  Json got = ClusterModel(row).run();
  sort_within_kind(want);
  sort_within_kind(got);
  return first_difference(want, got);
}

const bool kRegistered[] = {
    support::add_vector_check("lifecycle/node_health", simulate),
    support::add_vector_check("lifecycle/disruption_traces", simulate),
    support::add_vector_check("lifecycle/legacy_eviction", simulate),
};

}  // namespace
}  // namespace spillway::controllers
