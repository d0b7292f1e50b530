// A custom resource of 5 kB and the schema of its kind: what reading the schema costs, and what each write costs after
// that. The peer is the calibration of the same run: only ratios mean anything.
#include "base/rng.h"
#include "policy/structural/object_rules.h"
#include "policy/structural/object_shape.h"
#include "policy/structural/structural_schema.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {
namespace {

void structural_calibration(benchmark::State& state) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i % 256);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes.data());
    benchmark::DoNotOptimize(fnv1a64(bytes));
  }
}

/// As operators have them: containers with ports, variables and resources, a selector, conditions.
const api::Json& schema_document() {
  static const api::Json kDocument = *api::parse_json(R"({"type":"object","properties":{
    "spec":{"type":"object","required":["replicas"],"properties":{
      "replicas":{"type":"integer","format":"int32","default":1,"minimum":0,"maximum":100},
      "mode":{"type":"string","enum":["Active","Passive"],"default":"Active"},
      "selector":{"type":"object","additionalProperties":{"type":"string","maxLength":63}},
      "containers":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{
        "type":"object","required":["name","image"],"properties":{
          "name":{"type":"string","pattern":"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$","maxLength":63},
          "image":{"type":"string","minLength":1},
          "env":{"type":"array","items":{"type":"object","required":["name"],"properties":{
            "name":{"type":"string"},"value":{"type":"string","default":""}}}},
          "ports":{"type":"array","items":{"type":"object","properties":{
            "port":{"type":"integer","minimum":1,"maximum":65535},"protocol":{"type":"string","default":"TCP"}}}},
          "resources":{"type":"object","properties":{
            "cpu":{"x-kubernetes-int-or-string":true},"memory":{"x-kubernetes-int-or-string":true}}}}}}}},
    "status":{"type":"object","properties":{"conditions":{"type":"array","items":{"type":"object","properties":{
      "type":{"type":"string"},"status":{"type":"string"},"lastTransitionTime":{"type":"string","format":"date-time"}}}}}}}})");
  return kDocument;
}

api::Json schema_with_rule() {
  api::Json document = schema_document();
  document.make({"properties", "spec", "x-kubernetes-validations"}) = api::Json::array(
      {api::Json::object({{"rule", "self.mode == 'Passive' || self.replicas > 0"}}),
       api::Json::object({{"rule", "self.containers.all(c, !has(c.ports) || c.ports.all(p, p.port != 22))"}})});
  return document;
}

api::Json resource() {
  std::string text =
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"a":"b"}},"spec":{"replicas":3,"selector":{"app":"w"},"containers":[)";
  for (int i = 0; i < 12; ++i) {
    text += fmt::format(R"({}{{"name":"c{}","image":"registry.example.com/team/image:{}","env":[)", i == 0 ? "" : ",",
                        i, i);
    for (int j = 0; j < 6; ++j)
      text += fmt::format(R"({}{{"name":"VARIABLE_{}","value":"value {}"}})", j == 0 ? "" : ",", j, j);
    text += R"(],"ports":[{"port":80},{"port":443}],"resources":{"cpu":1,"memory":"1Gi"}})";
  }
  text +=
      R"(]},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})";
  return *api::parse_json(text);
}

void structural_read_schema(benchmark::State& state) {
  const api::Json document = schema_with_rule();
  for (auto _ : state) {
    api::FieldErrors errors;
    benchmark::DoNotOptimize(Schema::read(document, "s", errors));
  }
}

void structural_prune_and_fill_in(benchmark::State& state) {
  const Schema schema = *Schema::reread(schema_document());
  const api::Json sent = resource();
  for (auto _ : state) {
    api::Json object = sent;
    benchmark::DoNotOptimize(prune(schema, object));
    apply_defaults(schema, object);
    benchmark::DoNotOptimize(object);
  }
  state.counters["bytes"] = static_cast<double>(api::to_text(sent).size());
}

void validate(benchmark::State& state, const api::Json& document) {
  const Schema schema = *Schema::reread(document);
  api::Json object = resource();
  apply_defaults(schema, object);
  for (auto _ : state) {
    api::FieldErrors errors;
    validate_object(schema, object, nullptr, errors);
    if (!errors.empty()) state.SkipWithError("the object is not valid");
  }
}

void structural_validate(benchmark::State& state) {
  validate(state, schema_document());
}

void structural_validate_with_rules(benchmark::State& state) {
  validate(state, schema_with_rule());
}

BENCHMARK(structural_calibration);
BENCHMARK(structural_read_schema);
BENCHMARK(structural_prune_and_fill_in);
BENCHMARK(structural_validate);
BENCHMARK(structural_validate_with_rules);

}  // namespace
}  // namespace spillway::structural
