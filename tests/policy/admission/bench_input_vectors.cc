// vectors/admission/bench_inputs: what bench/policy and bench/api measure, with the expected answers.
#include "api/codec/codec.h"
#include "api/text/quantity.h"
#include "policy/admission/chain.h"
#include "policy/admission/preemption.h"
#include "policy/admission/reading.h"
#include "support/vectors.h"

#include <memory>

namespace spillway::admission {
namespace {

using api::Json;
using support::compare;
using support::Mismatch;

Json sum_of(const Json& in) {
  api::Quantity sum;
  for (const std::string& text : strings_at(in, "strings")) sum += api::parse_quantity(text).value();
  return Json::object({{"sum", sum.canonical()}, {"sum_format", "DecimalSI"}});
}

Json victims_of(const Json& in) {
  const std::vector<api::Pod> pods = pods_at(in);
  std::vector<Requirement> requirements;
  for (const Json& each : *in.find("requirements")->if_array()) {
    requirements.push_back({std::string(each.string_at({"resource"})), number_at(each, "quantity")});
  }
  Json victims = Json::array();
  for (const std::size_t each : choose_victims(pod_at(in, "preemptor"), pointers_to(pods), requirements).victims) {
    victims.if_array()->emplace_back(pods[each].metadata.name);
  }
  return Json::object({{"victims", victims}});
}

Json result_on_node(const Json& in) {
  const std::vector<api::Pod> pods = pods_at(in);
  const SysctlAllowlist nothing;
  const NodeSituation situation{
      .node = std::make_shared<const api::Node>(api::decode<api::Node>(*in.find("node")).value()),
      .operating_system = "linux",
      .conditions = {},
      .sysctls = nothing,
      .app_armor_error = {},
      .shutting_down = false,
      .features = {},
      .allocate = {},
      .devices_in_use = {}};
  return Json::object({{"result", result_of(admit_pod(situation, pod_at(in), pointers_to(pods)))}});
}

std::optional<Mismatch> check_bench_input(const Json& row) {
  const Json& in = *row.find("in");
  const std::string_view name = row.string_at({"name"});
  if (name.starts_with("parse_quantity")) return compare(*row.find("want"), sum_of(in));
  return compare(*row.find("want"), name.starts_with("preempt") ? victims_of(in) : result_on_node(in));
}

const bool kBenchInputs = support::add_vector_check("admission/bench_inputs", check_bench_input);

}  // namespace
}  // namespace spillway::admission
