// Questions of the dashboard as scenarios.
#include "sim/scenario/what_if.h"

#include "sim/scenario/parser.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::sim {
namespace {

Result<WhatIf> ask(const std::string& question) {
  return parse_what_if(*api::parse_json(question));
}

Result<std::string> no_file(const std::string& file) {
  return invalid(file, "no file is read");
}

/// The scenario and both configurations are files that the parser takes; `cluster` is what a cluster would bring.
std::string reads(const WhatIf& what_if) {
  std::string scenario = what_if.scenario;
  scenario.insert(1, R"("cluster":{"nodes":6,"zones":3},)");
  if (const auto parsed = parse_scenario("q", scenario, no_file); !parsed) return parsed.error().text();
  for (const std::string& config : {what_if.config_a, what_if.config_b}) {
    if (const auto parsed = parse_scenario_config("c", config, no_file); !parsed) return parsed.error().text();
  }
  return "reads";
}

TEST(WhatIf, NodesThatFallSilentWithAndWithoutBrakes) {
  const auto zone = ask(R"({"zone":"zone-1","minutes":10})");
  ASSERT_TRUE(zone) << zone.error().text();
  EXPECT_EQ(reads(*zone), "reads");
  EXPECT_TRUE(zone->scenario.contains(R"("partition":{"zone":"zone-1"})")) << zone->scenario;
  EXPECT_TRUE(zone->scenario.contains(R"("duration":"25m")"));
  EXPECT_NE(zone->config_a, zone->config_b);
  const auto nodes = ask(R"({"nodes":["node-00000","node-00003"],"minutes":1})");
  ASSERT_TRUE(nodes) << nodes.error().text();
  EXPECT_EQ(reads(*nodes), "reads");
}

TEST(WhatIf, PodsThatGrowUnderTwoThresholds) {
  const auto growth = ask(R"({"pods":"default/web-*","to":"2Gi","minutes":5,"memoryAvailable":["100Mi","10%"]})");
  ASSERT_TRUE(growth) << growth.error().text();
  EXPECT_EQ(reads(*growth), "reads");
  EXPECT_TRUE(growth->config_a.contains("100Mi"));
  EXPECT_TRUE(growth->config_b.contains("10%"));
}

TEST(WhatIf, NothingElseIsAsked) {
  for (const char* question :
       {R"([])", R"({})", R"({"zone":"a"})", R"({"zone":"a","minutes":0})", R"({"zone":"a","minutes":61})",
        R"({"zone":"a","minutes":"5"})", R"({"zone":"","minutes":5})", R"({"zone":"a","nodes":["b"],"minutes":5})",
        R"({"nodes":[],"minutes":5})", R"({"nodes":[1],"minutes":5})",
        R"({"zone":"a","minutes":5,"import":"/etc/passwd"})", R"({"zone":"a\nimport: /etc/passwd","minutes":5})",
        R"({"zone":"a\"}","minutes":5})", R"({"pods":"a/b","to":"2Gi","minutes":5})",
        R"({"pods":"a/b","to":"lots","minutes":5,"memoryAvailable":["1Mi","2Mi"]})",
        R"({"pods":"a/b","to":"2Gi","minutes":5,"memoryAvailable":["1Mi"]})",
        R"({"pods":"a/{b}","to":"2Gi","minutes":5,"memoryAvailable":["1Mi","2Mi"]})",
        R"({"pods":"a/b","to":"2Gi","minutes":5,"memoryAvailable":["1Mi","none"]})",
        R"({"pods":"a/b","to":"2Gi","minutes":5,"memoryAvailable":["1Mi","2Mi"],"zone":"a"})"}) {
    const auto answer = ask(question);
    EXPECT_FALSE(answer) << question;
    if (!answer) {
      EXPECT_EQ(answer.error().code, ErrorCode::kInvalid) << question;
    }
  }
  std::string many;
  for (int i = 0; i < 1001; ++i) many += (i == 0 ? "\"n" : ",\"n") + std::to_string(i) + "\"";
  EXPECT_FALSE(ask(R"({"minutes":5,"nodes":[)" + many + "]}"));
}

}  // namespace
}  // namespace spillway::sim
