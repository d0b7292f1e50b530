// vectors/scheduling: declared_features.
#include "api/codec/codec.h"
#include "policy/declared_features.h"
#include "support/vectors.h"

namespace spillway::scheduling {
namespace {

using api::Json;
using support::Mismatch;

Json names_of(const std::vector<std::string_view>& features) {
  Json names = Json::array();
  for (const std::string_view each : features) names.if_array()->emplace_back(each);
  return names;
}

std::optional<Mismatch> check_declared_features(const Json& row) {
  const Json& in = *row.find("in");
  const auto pod = api::decode<api::Pod>(*in.find("pod")).value();
  const auto updated = api::decode<api::Pod>(*in.find("updated")).value();
  return support::compare(*row.find("want"),
                          Json::object({{"scheduling", names_of(policy::features_to_run(pod.spec))},
                                        {"update", names_of(policy::features_to_update(pod.spec, updated.spec))}}));
}

const bool kDeclaredFeatures = support::add_vector_check("scheduling/declared_features", check_declared_features);

}  // namespace
}  // namespace spillway::scheduling
