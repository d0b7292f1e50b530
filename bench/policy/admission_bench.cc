// The agent's predicates and the choice of victims on the inputs on which upstream's costs were measured, beside the
// same calibration. Source of input and of the peer's numbers: spec "Pod admission", 17; vectors
// admission/bench_inputs, whose answers the unit tests check. Only ratios within one run mean anything.
#include "api/codec/codec.h"
#include "base/rng.h"
#include "policy/admission/predicates.h"
#include "policy/admission/preemption.h"
#include "support/vectors.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {
namespace {

/// 64-bit FNV-1a over 4,096 bytes: what other numbers of the same run are compared with.
void admission_calibration(benchmark::State& state) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i % 256);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(fnv1a64(bytes));
  }
}

api::Json input(std::string_view name) {
  const auto rows = support::load_rows(SPILLWAY_SOURCE_DIR "/tests/vectors/admission/bench_inputs.jsonl.gz");
  for (const support::VectorRow& row : rows.value()) {
    if (row.name() == name) return *row.document.find("in");
  }
  return {};
}

struct Input {
  explicit Input(std::string_view name, std::string_view newcomer) : document(input(name)) {
    pod = api::decode<api::Pod>(*document.find(newcomer)).value();
    for (const api::Json& each : *document.find("pods")->if_array()) {
      others.push_back(api::decode<api::Pod>(each).value());
    }
    for (const api::Pod& each : others) active.push_back(&each);
  }

  api::Json document;
  api::Pod pod;
  std::vector<api::Pod> others;
  std::vector<const api::Pod*> active;
};

policy::NodeLoad summed_up(const Input& in, const std::shared_ptr<const api::Node>& node) {
  policy::NodeLoad load(node);
  for (const api::Pod* each : in.active) load.add_unscored(*each);
  return load;
}

std::shared_ptr<const api::Node> node_of(const Input& in) {
  return std::make_shared<const api::Node>(api::decode<api::Node>(*in.document.find("node")).value());
}

/// Used resources and ports of 110 pods.
void sum_up_a_node(benchmark::State& state) {
  const Input in("predicate_admit_110", "pod");
  const auto node = node_of(in);
  for (auto _ : state) benchmark::DoNotOptimize(summed_up(in, node));
}

/// Admits one pod, including the sums over the node's pods.
void predicate_admit(benchmark::State& state) {
  const Input in("predicate_admit_110", "pod");
  const auto node = node_of(in);
  for (auto _ : state) {
    const policy::NodeLoad load = summed_up(in, node);
    const PredicateNode seen{.load = load, .operating_system = "linux", .devices_in_use = {}, .features = {}};
    const Answer answer = admit_by_predicates(in.pod, seen, in.active);
    if (answer.refusal) state.SkipWithError("the pod must be admitted");
  }
}

void choose_victims_of(benchmark::State& state, const char* name) {
  const Input in(name, "preemptor");
  std::vector<Requirement> requirements;
  for (const api::Json& each : *in.document.find("requirements")->if_array()) {
    requirements.push_back({std::string(each.string_at({"resource"})), each.find("quantity")->if_int64().value()});
  }
  for (auto _ : state) {
    const Choice choice = choose_victims(in.pod, in.active, requirements);
    if (choice.victims.empty()) state.SkipWithError("somebody must leave");
  }
}

BENCHMARK(admission_calibration);
BENCHMARK(sum_up_a_node);
BENCHMARK(predicate_admit);
BENCHMARK_CAPTURE(choose_victims_of, preempt_110, "preempt_110");
BENCHMARK_CAPTURE(choose_victims_of, preempt_500, "preempt_500");

}  // namespace
}  // namespace spillway::admission
