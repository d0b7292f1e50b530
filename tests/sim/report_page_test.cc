// The report of a run as a file: names are text whatever is in them, the policy fits the script, and it stays small.
#include "sim/report/report_page.h"

#include "api/json/json.h"
#include "sim/report/page_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {
namespace {

std::string plain(const policy::Decision& decision) {
  return decision.message + "\n\n  Also\n";
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

api::Json data_of(const std::string& page) {
  const std::string_view begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  const auto document = api::parse_json(page.substr(from, page.find("</script>", from) - from));
  return document ? *document : api::Json();
}

RunHistory small_run() {
  RunHistory run;
  run.name = "run";
  run.length_ms = 60'000;
  run.zones.push_back({.name = "zone-0", .state = {{0, 1}}, .waiting = {}, .brake = {}});
  run.nodes.push_back(
      {.name = "n1", .zone = 0, .memory_kib = 1024, .thresholds = -1, .state = {{0, 1}}, .available_kib = {}});
  return run;
}

TEST(DeltaText, TimesAreDistances) {
  EXPECT_EQ(delta_text({}), "[]");
  EXPECT_EQ(delta_text({{0, 5}}), "[0,5]");
  EXPECT_EQ(delta_text({{1000, 5}, {1500, -1}, {61'500, 7}}), "[1000,5,500,-1,60000,7]");
}

TEST(ReportPage, NamesThatWouldBeMarkupStayText) {
  const std::string attack = "</script><img src=x onerror=alert(1)>\"'&\\<!--";
  RunHistory run = small_run();
  run.name = attack;
  run.story = attack;
  run.zones[0].name = attack;
  run.nodes[0].name = attack;
  run.events.push_back({.at_ms = 1, .kind = EventKind::kEvicted, .node = 0, .subject = attack, .text = attack});
  run.violations.push_back(attack);
  run.summary = {.verdict = attack,
                 .is_good = false,
                 .sentences = {attack},
                 .expectations = {{true, attack, attack}},
                 .figures = {{attack, attack, attack, true}}};
  run.brakes.push_back(attack);
  run.decisions.push_back({.at_ms = 1, .node = 0, .decision = {}});
  run.decisions.back().decision.message = attack;
  const std::string page = report_page(attack, std::vector{run}, plain);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("</script><"), std::string::npos);
  EXPECT_EQ(count_of(page, "<script"), 2U);
  EXPECT_EQ(count_of(page, "</script>"), 2U);
  EXPECT_EQ(count_of(page, "<!--"), 0U);
  EXPECT_NE(page.find("<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;"), std::string::npos);
  const api::Json data = data_of(page);
  const api::Json* runs = data.find("runs");
  ASSERT_NE(runs, nullptr);
  EXPECT_EQ((*runs->if_array())[0].string_at({"name"}), attack);  // and no byte is lost
}

TEST(ReportPage, NoPlaceOfTheFrameIsLeft) {
  const std::string page = report_page("{{data}}", std::vector{small_run()}, plain);
  EXPECT_EQ(count_of(page, "{{data}}"), 1U);  // the title, which is not expanded again
  for (const char* place : {"{{policy}}", "{{title}}", "{{style}}", "{{script}}"})
    EXPECT_EQ(page.find(place), std::string::npos) << place;
}

TEST(ReportPage, LoadsNothingFromOtherServers) {
  const std::string page = report_page("t", std::vector{small_run()}, plain);
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find("unsafe"), std::string::npos);
  for (const char* outside : {"http:", "https:", "src=\"", "@import", "url(", " onclick=", " onload=", " style="})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(ReportPage, ScriptHasNoImportsLeft) {
  std::string script;
  for (const std::string_view piece : kPageScript.pieces) script += piece;
  EXPECT_EQ(script.find("\nimport "), std::string::npos);
  EXPECT_EQ(script.find("\nexport "), std::string::npos);
  EXPECT_NE(script.find("function readRuns("), std::string::npos);
  EXPECT_EQ(kPageScript.sha256.size(), 64U);
}

TEST(ReportPage, AnEmptyRunIsComplete) {
  const api::Json data = data_of(report_page("t", std::vector{RunHistory()}, plain));
  const api::Json& run = (*data.find("runs")->if_array())[0];
  for (const char* list : {"nodes", "zones", "events", "decisions", "violations", "texts", "brakes", "running"}) {
    ASSERT_NE(run.find(list), nullptr) << list;
    EXPECT_TRUE(run.find(list)->if_array()->empty()) << list;
  }
}

TEST(ReportPage, MemoryIsInSamplesAndSteps) {
  RunHistory run = small_run();
  run.sample_ms = 5000;
  run.nodes[0].memory_kib = 8192;  // a step is 2 KiB
  run.nodes[0].available_kib = {{0, -1}, {5000, 8192}, {20'000, 101}};
  const std::string data = page_data(std::vector{run}, plain);
  EXPECT_NE(data.find(R"(["n1",0,8192,-1,[0,1],[0,-1,1,4096,3,50]])"), std::string::npos) << data;
}

TEST(ReportPage, TheResultAndTheBeginningOfItsClockAreInIt) {
  RunHistory run = small_run();
  run.timeline_ms = 45'000;
  run.summary = {.verdict = "passed",
                 .is_good = true,
                 .sentences = {"All was well."},
                 .expectations = {{false, "flips == 0", "flips was 2"}},
                 .figures = {{"10m29s", "until", {}, true}}};
  const std::string data = page_data(std::vector{run}, plain);
  EXPECT_NE(data.find(R"("timeline":45000)"), std::string::npos) << data;
  EXPECT_NE(data.find(R"("summary":{"verdict":"passed","good":1,"sentences":["All was well."],)"
                      R"("expectations":[[0,"flips == 0","flips was 2"]],"figures":[["10m29s","until",1]]})"),
            std::string::npos)
      << data;
}

TEST(ReportPage, LinesThatDecisionsShareAreThereOnce) {
  RunHistory run = small_run();
  for (int i = 0; i < 50; ++i) {
    run.decisions.push_back({.at_ms = i, .node = 0, .decision = {}});
    run.decisions.back().decision.message = "the same for all";
  }
  const std::string data = page_data(std::vector{run}, plain);
  EXPECT_EQ(count_of(data, "the same for all"), 1U);
  EXPECT_EQ(count_of(data, "  Also"), 1U);
}

/// 5,000 nodes for an hour at a look every 10 s; a third of them falls silent; the memory of all of them moves all the
/// time, and every decision and event there is room for is there.
TEST(ReportPage, FiveThousandNodesForAnHourStaySmall) {
  RunHistory run = small_run();
  run.length_ms = 3'600'000;
  run.sample_ms = 10'000;
  run.nodes.clear();
  for (std::int32_t node = 0; node < 5000; ++node) {
    NodeHistory& made = run.nodes.emplace_back();
    made = {.name = fmt::format("node-{:05}", node),
            .zone = 0,
            .memory_kib = 64 << 20,
            .thresholds = -1,
            .state = {},
            .available_kib = {}};
    made.state = {{0, 1024}, {node, 0}, {node + 700, 169}};
    if (node % 3 == 0)
      made.state.insert(
          made.state.end(),
          {{600'000, 2217}, {650'000, 2303}, {660'000 + node * 10, 2559}, {2'400'000, 511}, {2'403'000, 169}});
    for (std::int32_t sample = 0; sample < 360; ++sample)
      made.available_kib.push_back({sample * 10'000, (60 << 20) - (sample * 7919 + node * 104'729) % (20 << 20)});
  }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(RunHistory::kEventsMax); ++i)
    run.events.push_back({i * 100, EventKind::kDeleted, i % 5000, fmt::format("default/web-{:05}", i),
                          "Taint manager: deleting due to NoExecute taint"});
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(RunHistory::kDecisionsMax); ++i) {
    run.decisions.push_back({.at_ms = i * 500, .node = i, .decision = {}});
    run.decisions.back().decision.message =
        fmt::format("node node-{:05} is not tainted yet: its last sign of life (lease) is {}s old", i, i % 97);
  }
  const std::string page = report_page("t", std::vector{run}, plain);
  RecordProperty("bytes", static_cast<int>(page.size()));
  EXPECT_LT(page.size(), std::size_t{16} << 20);
  for (NodeHistory& node : run.nodes) node.available_kib = {{5000, 63 << 20}};
  const std::string quiet = report_page("t", std::vector{run}, plain);
  RecordProperty("bytes_at_rest", static_cast<int>(quiet.size()));
  EXPECT_LT(quiet.size(), std::size_t{3} << 20);
  fmt::print("5,000 nodes, 1 h: {} bytes; with memory at rest {} bytes\n", page.size(), quiet.size());
}

}  // namespace
}  // namespace spillway::sim
