// Incidents as files: what they say, what is wrong with one, and the quick ones played: recovery, and that brakes never
// do more than no brakes.
#include "sim/incidents.h"

#include "yaml/yaml_document.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace spillway::sim {

namespace {

const std::string kFolder = "examples/incidents/";  // tests run in the project folder

Result<Incident> parse(const std::string& text) {
  const auto yaml = yaml::parse("i.yaml", text);
  if (!yaml) return yaml.error();
  return parse_incident(yaml->value, "i.yaml");
}

Result<Incident> read(const std::string& file) {
  const auto yaml = yaml::read_file(file);
  if (!yaml) return yaml.error();
  return parse_incident(yaml->value, file);
}

std::string error_of(const std::string& text) {
  const auto incident = parse(text);
  return incident ? "none" : incident.error().text();
}

TEST(IncidentFile, EveryExampleReads) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const auto incident = read(file.path().string());
    ASSERT_TRUE(incident) << incident.error().text();
    EXPECT_EQ(incident->name, file.path().stem().string());
    ++files;
  }
  EXPECT_GE(files, 7);
}

TEST(IncidentFile, SaysItAll) {
  const auto incident = parse(R"({name: x, story: s, nodes: 12, zones: 2, podsPerNode: 1, steps: [
    {partition: {zone: zone-1, skip: 2, every: 3}}, {repeat: {times: 2, steps: [{wait: 90s}, {jumpClock: -1h}]}},
    {crash: controllers}, {restart: {only: [1, 2]}}, {muteWatch: /leases}]})");
  ASSERT_TRUE(incident) << incident.error().text();
  EXPECT_EQ(incident->nodes, 12);
  ASSERT_EQ(incident->steps.size(), 5U);
  const auto& cut = std::get<OnNodes>(incident->steps[0]);
  EXPECT_EQ(cut.nodes, (NodeChoice{.zone = "zone-1", .skip = 2, .every = 3, .only = {}}));
  const auto& repeat = std::get<Repeat>(incident->steps[1]);
  EXPECT_EQ(repeat.times, 2);
  EXPECT_EQ(std::get<Wait>(repeat.steps[0]).time, seconds(90));
  EXPECT_EQ(std::get<JumpClock>(repeat.steps[1]).by, -hours(1));
  EXPECT_EQ(std::get<OnControllers>(incident->steps[2]).what, OnControllers::What::kCrash);
}

TEST(IncidentFile, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("{name: x, story: s, stepps: []}"), "i.yaml: unknown key \"stepps\"; did you mean \"steps\"?");
  EXPECT_EQ(error_of("{name: x, story: s, steps: [{partitoin: all}]}"),
            "i.yaml.steps[0]: unknown key \"partitoin\"; did you mean \"partition\"?");
  EXPECT_EQ(error_of("{name: x, story: s, steps: [{partition: {zon: a}}]}"),
            "i.yaml.steps[0].partition: unknown key \"zon\"; did you mean \"zone\"?");
  EXPECT_EQ(error_of("{name: x, story: s, steps: [{wait: soon}]}"),
            "i.yaml.steps[0].wait: must be a duration, e.g. 90s, got \"soon\"");
  EXPECT_EQ(error_of("{name: x, story: s, nodes: 0, steps: [{wait: 1s}]}"),
            "i.yaml.nodes: must be a whole number from 1 to 5000");
  EXPECT_EQ(error_of("{name: x, story: s, steps: []}"), "i.yaml.steps: must be a list of 1 to 1000 steps");
  EXPECT_EQ(error_of("{name: x, story: s, steps: [{rollingReboot: {away: 1m}}]}"),
            "i.yaml.steps[0].rollingReboot.interval: is missing");
  EXPECT_EQ(error_of("{name: x, story: s, steps: [{wait: 1s}, {partition: {zone: zone-9}}]}"),
            "i.yaml.steps[1].zone: there is no zone \"zone-9\"; this cluster has zone-0 to zone-2");
  EXPECT_EQ(error_of("{name: x, story: s, nodes: 1, steps: [{repeat: {times: 2, steps: [{heal: {zone: a}}]}}]}"),
            "i.yaml.steps[0].repeat.steps[0].zone: there is no zone \"a\"; this cluster has zone-0");
  EXPECT_EQ(error_of("{name: x, story: s, nodes: 4, steps: [{crash: {only: [3, 4]}}]}"),
            "i.yaml.steps[0].only: there is no node 4; this cluster has 0 to 3");
}

class SmallIncident : public ::testing::TestWithParam<std::string> {};

TEST_P(SmallIncident, RecoversAndBrakesOnlyHold) {
  auto incident = read(kFolder + GetParam() + ".yaml");
  ASSERT_TRUE(incident) << incident.error().text();
  incident->nodes = 9;
  const IncidentReport off = run_incident(*incident, Brakes::kOff, 1);
  const IncidentReport on = run_incident(*incident, Brakes::kOn, 1);
  for (const std::string& violation : off.violations) ADD_FAILURE() << violation;
  for (const std::string& violation : on.violations) ADD_FAILURE() << violation;
  EXPECT_LE(on.readiness_flips, off.readiness_flips);
  EXPECT_LE(on.taints, off.taints);
  EXPECT_LE(on.deletions, off.deletions);
}

INSTANTIATE_TEST_SUITE_P(Named, SmallIncident, ::testing::Values("lost-lease-watch", "killed-before-tainting"));

}  // namespace

}  // namespace spillway::sim
