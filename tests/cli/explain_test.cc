// Goal: the answer comes first, in one line, tables align, and a wrong command line is refused with one line.
#include "cli/flags/command_line.h"
#include "cli/text/explanation.h"
#include "cli/text/value_text.h"
#include "policy/decision_json.h"
#include "support/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spillway::cli {
namespace {

using policy::Candidate;
using policy::Decision;
using policy::Fact;
using policy::ReasonCode;

Candidate candidate(const std::string& name, ReasonCode code, std::int64_t above_mib, std::string decided_by) {
  return {{.kind = "Pod", .ns = "shop", .name = name, .uid = "uid-" + name},
          {code, {{"priority", std::int64_t{0}}, {"above_request_bytes", above_mib << 20}}},
          std::move(decided_by)};
}

Decision eviction_of_hog() {
  Decision decision;
  decision.at = WallTime(seconds(1'700'000'000));
  decision.by = "n1";
  decision.area = policy::Area::kEviction;
  decision.verdict = policy::Verdict::kActs;
  decision.action = "evict";
  decision.subject = {.kind = "Pod", .ns = "shop", .name = "hog", .uid = "uid-hog"};
  decision.message = "The node was low on resource: memory. ";
  decision.reasons = {{ReasonCode::kThresholdMet,
                       {{"signal", std::string("memory.available")},
                        {"available_bytes", std::int64_t{99} << 20},
                        {"threshold_bytes", std::int64_t{100} << 20},
                        {"capacity_bytes", std::int64_t{1} << 30}}}};
  decision.candidates = {candidate("hog", ReasonCode::kRankedFirst, 400, "above-request"),
                         candidate("modest-but-long", ReasonCode::kRankedLater, -195, "")};
  decision.candidates_total = 2;
  decision.cost = {{"grace_seconds", std::int64_t{1}}, {"gone_after_seconds", 0.012}};
  return decision;
}

TEST(Explain, LeadsWithTheAnswer) {
  const std::string text = explain(eviction_of_hog(), std::nullopt, Paint::kNone);
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      "pod shop/hog was evicted by n1 at 2023-11-14T22:13:20.000Z: memory.available was 99Mi, below its threshold of "
      "100Mi");
}

TEST(Explain, TablesAlignAndNothingTrails) {
  const std::string text = explain(eviction_of_hog(), std::nullopt, Paint::kNone);
  EXPECT_NE(text.find("    #   NAME                   PRIORITY   ABOVE REQUEST\n"
                      "    1   shop/hog               0          400Mi           evicted\n"
                      "    2   shop/modest-but-long   0          -195Mi\n"
                      "    shop/hog is first: it uses 400Mi more than it requested, the most of its priority\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("grace 1s, gone after 12ms\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(" \n    #"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Explain, HeadlinesDoNotContradictThemselves) {
  Decision decision = eviction_of_hog();
  decision.reasons[0].facts[1].value = (std::int64_t{100} << 20) - 41'000;  // 40 Ki below the threshold
  EXPECT_TRUE(headline(decision, std::nullopt).ends_with("memory.available was 99.96Mi, below its threshold of 100Mi"))
      << headline(decision, std::nullopt);
  decision.reasons[0].facts[1].value = (std::int64_t{100} << 20) - 1;
  EXPECT_TRUE(headline(decision, std::nullopt).ends_with("was 99.99Mi, below its threshold of 100Mi"))
      << headline(decision, std::nullopt);
  Decision silent;
  silent.subject = {.kind = "Node", .ns = {}, .name = "n1", .uid = {}};
  silent.area = policy::Area::kLifecycle;
  silent.action = "taint";
  silent.verdict = policy::Verdict::kWaits;
  silent.reasons = {
      {ReasonCode::kHeartbeatStale,
       {{"from", std::string("lease")}, {"silence_seconds", 50.004}, {"grace_seconds", std::int64_t{50}}}}};
  EXPECT_EQ(headline(silent, std::nullopt),
            "node n1 is not tainted yet: its last sign of life (lease) is 50.01s old, beyond its grace of 50s");
}

TEST(Explain, FitsTheScreen) {
  Decision decision = eviction_of_hog();
  decision.reasons.push_back({ReasonCode::kThresholdNotMet,
                              {{"signal", std::string("nodefs.available")},
                               {"available_bytes", std::int64_t{9} << 30},
                               {"threshold_bytes", std::int64_t{1} << 30},
                               {"forecast_seconds", 60'796'800.0}}});
  for (const std::size_t width : {40U, 60U, 80U, 120U}) {
    const std::string text = explain(decision, std::nullopt, Paint::kNone, width);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      EXPECT_LE(end - begin, std::max<std::size_t>(width, 60)) << width << ": " << text.substr(begin, end - begin);
      begin = end + 1;
    }
    EXPECT_EQ(text.find("nodefs"), std::string::npos) << "a signal far from its threshold has no row";
    EXPECT_NE(text.find("1 other signal is far from"), std::string::npos) << text;
  }
}

TEST(Explain, AmountsOfAResourceHaveItsUnit) {
  Decision decision;
  decision.area = policy::Area::kScheduling;
  decision.action = "bind";
  decision.verdict = policy::Verdict::kRefuses;
  decision.subject = {.kind = "Pod", .ns = "shop", .name = "big", .uid = {}};
  const auto short_of = [](const std::string& node, const std::string& resource, std::int64_t requested) {
    return Candidate{{.kind = "Node", .ns = {}, .name = node, .uid = {}},
                     {ReasonCode::kInsufficientResource,
                      {{"resource", resource}, {"requested", requested}, {"used", std::int64_t{8} << 20}}},
                     {}};
  };
  decision.candidates = {short_of("n1", "memory", std::int64_t{2} << 30), short_of("n2", "cpu", 1500)};
  const std::string text = explain(decision, std::nullopt, Paint::kNone);
  EXPECT_NE(text.find("n1     insufficient resource   memory     2Gi         8Mi\n"), std::string::npos) << text;
  EXPECT_NE(text.find("n2     insufficient resource   cpu        1500m       8388608m\n"), std::string::npos) << text;
}

/// The state of a node without pressure: no threshold is met, two pods are ranked.
Decision calm_node() {
  Decision decision;
  decision.at = WallTime(seconds(1'700'000'000));
  decision.by = "n1";
  decision.area = policy::Area::kEviction;
  decision.verdict = policy::Verdict::kRests;
  decision.action = "evict";
  decision.subject = {.kind = "Node", .ns = {}, .name = "n1", .uid = {}};
  decision.reasons = {{ReasonCode::kNoThresholdMet, {}}};
  decision.candidates = {candidate("hog", ReasonCode::kRankedFirst, 400, "above-request"),
                         candidate("modest", ReasonCode::kRankedLater, -195, "")};
  decision.candidates_total = 2;
  return decision;
}

policy::Reason signal_far_from_threshold(const std::string& signal, double forecast_seconds) {
  return {ReasonCode::kThresholdNotMet,
          {{"signal", signal},
           {"available_bytes", std::int64_t{126} << 20},
           {"threshold_bytes", std::int64_t{60} << 20},
           {"forecast_seconds", forecast_seconds}}};
}

TEST(Explain, APodWithoutTroubleIsInNoDanger) {
  Decision decision = calm_node();
  EXPECT_EQ(headline(decision, api::PodKey{"shop", "modest"}),
            "pod shop/modest is in no danger of eviction: no threshold of node n1 is met; it is 2 of 2 in the order");
  decision.reasons.push_back(signal_far_from_threshold("memory.available", 3601));
  EXPECT_TRUE(headline(decision, api::PodKey{"shop", "modest"}).contains("is in no danger of eviction"))
      << "a forecast beyond an hour says nothing";
}

TEST(Explain, APodOfANodeThatNearsAThresholdIsNotCalledSafe) {
  Decision decision = calm_node();
  decision.reasons.push_back(signal_far_from_threshold("nodefs.available", 90));
  decision.reasons.push_back(signal_far_from_threshold("memory.available", 6));
  EXPECT_EQ(headline(decision, api::PodKey{"shop", "hog"}),
            "pod shop/hog is not evicted now: no threshold of node n1 is met, but memory.available meets its threshold "
            "in 6s at the present rate; it is 1 of 2 in the order");
}

/// With SPILLWAY_TEXTS=FILE the texts are appended to that file, a JSON line each, to renew the rows.
void write_text(const std::string& name, const std::string& text) {
  const char* const file = std::getenv("SPILLWAY_TEXTS");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app) << api::to_text(api::Json::object({{"name", name}, {"text", text}})) << "\n";
}

/// The rows that the dashboard is held to as well (ui/test/explained.test.ts): both say the same of every decision.
TEST(Explain, SaysWhatTheDashboardSays) {
  const auto rows = support::load_rows(SPILLWAY_EXPLAINED);
  ASSERT_TRUE(rows);
  ASSERT_GT(rows->size(), 300U);
  for (const support::VectorRow& row : *rows) {
    const auto decision = policy::decision_from_json(*row.document.find("decision"));
    ASSERT_TRUE(decision) << row.name();
    const std::string asked(row.document.string_at({"pod"}));
    const std::size_t slash = asked.find('/');
    std::optional<api::PodKey> pod;
    if (slash != std::string::npos) pod = api::PodKey{asked.substr(0, slash), asked.substr(slash + 1)};
    const std::string text = explain(*decision, pod, Paint::kNone);
    write_text(row.name(), text);
    EXPECT_EQ(text, row.document.string_at({"text"})) << row.name();
  }
}

TEST(Explain, WhatANodeSaysMovesNoTerminal) {
  Decision hostile = eviction_of_hog();
  const std::string evil = "\x1b[2J\x1b]0;owned\x07\r\xff";
  hostile.by += evil;
  hostile.action += evil;
  hostile.message += evil;
  hostile.subject.ns += evil;
  hostile.subject.name += evil;
  hostile.reasons.front().facts.push_back({"name" + evil, "value" + evil});
  for (Candidate& each : hostile.candidates) {
    each.subject.name += evil + "\nshop/forged";
    each.decided_by += evil;
  }
  const auto read = policy::decision_from_json(policy::to_json(hostile));
  ASSERT_TRUE(read);
  const std::string text = explain(*read, std::nullopt, Paint::kNone);
  EXPECT_NE(text.find("?[2J"), std::string::npos);
  EXPECT_EQ(text.find_first_of(std::string("\x1b\x07\r\xff")), std::string::npos) << text;
  EXPECT_EQ(text.find("\nshop/forged"), std::string::npos) << text;
}

TEST(Explain, PaintsOnATerminalOnly) {
  EXPECT_NE(explain(eviction_of_hog(), std::nullopt, Paint::kTerminal).find("\x1b[31m"), std::string::npos);
}

TEST(Explain, SaysWhatItMeansForAnotherPod) {
  EXPECT_EQ(
      headline(eviction_of_hog(), api::PodKey{"shop", "modest-but-long"}),
      "pod shop/modest-but-long was not evicted at 2023-11-14T22:13:20.000Z: pod shop/hog went instead; it is 2 of "
      "2 in the order of eviction");
}

TEST(Explain, SaysWhyNothingIsEvicted) {
  Decision decision;
  decision.verdict = policy::Verdict::kRests;
  decision.action = "evict";
  decision.by = "n1";
  decision.subject = {.kind = "Node", .ns = {}, .name = "n1", .uid = {}};
  decision.reasons = {{ReasonCode::kNoThresholdMet, {}}};
  EXPECT_EQ(headline(decision, std::nullopt), "node n1: nothing is evicted: no threshold is met");
}

TEST(Explain, ReportsTheOtherEstimatorsAndTheBlindZone) {
  Decision decision = eviction_of_hog();
  decision.reasons.insert(decision.reasons.begin(), {ReasonCode::kEstimateDisagrees,
                                                     {{"estimator", std::string("available")},
                                                      {"estimate_bytes", std::int64_t{400} << 20},
                                                      {"chosen", std::string("workingset")},
                                                      {"difference_bytes", std::int64_t{301} << 20},
                                                      {"pressure", std::string("no")}}});
  decision.reasons.push_back({ReasonCode::kInBlindZone,
                              {{"signal", std::string("memory.available")},
                               {"threshold_bytes", std::int64_t{50} << 20},
                               {"blind_zone_bytes", std::int64_t{95} << 20}}});
  const std::string text = explain(decision, std::nullopt, Paint::kNone);
  EXPECT_NE(text.find("was evicted by n1 at 2023-11-14T22:13:20.000Z: memory.available was 99Mi"), std::string::npos);
  EXPECT_NE(text.find("    measured as \"available\": 400Mi available, 301Mi more than as \"workingset\", no pressure: "
                      "they disagree\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("    the kernel's OOM killer may act before memory.available falls to 50Mi: about 95Mi cannot "
                      "be used\n"),
            std::string::npos)
      << text;
}

TEST(Explain, PrintsDecisionsOfRoomsItDoesNotKnow) {
  Decision decision;
  decision.verdict = policy::Verdict::kRefuses;
  decision.action = "admit";
  decision.by = "n1";
  decision.subject = {.kind = "Pod", .ns = "shop", .name = "web", .uid = {}};
  decision.reasons = {{ReasonCode::kInsufficientResource,
                       {{"resource", std::string("memory")}, {"asked_bytes", std::int64_t{1} << 31}}}};
  EXPECT_EQ(
      headline(decision, std::nullopt),
      "pod shop/web was not admitted by n1 at 1970-01-01T00:00:00.000Z: insufficient resource: resource memory, asked "
      "2Gi");
}

TEST(Explain, SaysWhatEachNodeHasAgainstAPod) {
  Decision decision;
  decision.by = "default-scheduler";
  decision.area = policy::Area::kScheduling;
  decision.verdict = policy::Verdict::kRefuses;
  decision.action = "bind";
  decision.subject = {.kind = "Pod", .ns = "shop", .name = "big", .uid = "uid-big"};
  decision.message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.";
  decision.candidates = {
      {{"Node", {}, "n1", {}},
       {ReasonCode::kInsufficientResource, {{"resource", std::string("cpu")}, {"requested", std::int64_t{2000}}}},
       {}},
      {{"Node", {}, "n2", {}}, {ReasonCode::kNodeUnschedulable, {}}, {}}};
  decision.candidates_total = 2;
  const std::string text = explain(decision, api::PodKey{"shop", "big"}, Paint::kNone);
  EXPECT_NE(text.find("pod shop/big was not bound by default-scheduler at "), std::string::npos) << text;
  EXPECT_NE(text.find("    NODE   REASON                  RESOURCE   REQUESTED\n"
                      "    n1     insufficient resource   cpu        2\n"
                      "    n2     node unschedulable      -          -\n"),
            std::string::npos)
      << text;
}

TEST(ValueText, ReadsTheUnitFromTheName) {
  EXPECT_EQ(value_text({"a_bytes", std::int64_t{1536}}), "1.5Ki");
  EXPECT_EQ(value_text({"a_bytes", std::int64_t{-(300 << 20)}}), "-300Mi");
  EXPECT_EQ(value_text({"a_seconds", std::int64_t{300}}), "5m");
  EXPECT_EQ(value_text({"a_seconds", 0.0123}), "12ms");
  EXPECT_EQ(value_text({"priority", std::int64_t{2'000'000'000}}), "2000000000");
  EXPECT_EQ(value_text({"distance", 0.0399}), "0.0399");
  EXPECT_EQ(value_text({"distance", 2.0}), "2");
  EXPECT_EQ(value_text({"rate", 123456.78}), "123456.8");
  EXPECT_EQ(heading_of("above_request_bytes"), "ABOVE REQUEST");
}

std::variant<CommandLine, EarlyExit> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "spillway");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

const ExplainCommand& explained(const std::variant<CommandLine, EarlyExit>& parsed) {
  return std::get<ExplainCommand>(std::get<CommandLine>(parsed).command);
}

TEST(ExplainCommand, NamesAPodANodeOrTheLast) {
  const auto pod = parse({"explain", "pod/shop/hog", "--journal", "j"});
  EXPECT_EQ(explained(pod).about, ExplainCommand::About::kPod);
  EXPECT_EQ(explained(pod).name_space, "shop");
  EXPECT_EQ(explained(pod).name, "hog");
  const auto other = parse({"explain", "-n", "shop", "pod/hog", "-o", "json"});
  EXPECT_EQ(explained(other).name_space, "shop");
  EXPECT_EQ(explained(other).output, OutputFormat::kJson);
  EXPECT_EQ(explained(parse({"explain", "node/n1"})).about, ExplainCommand::About::kNode);
  EXPECT_EQ(explained(parse({"explain", "--last"})).about, ExplainCommand::About::kLast);
}

TEST(ExplainCommand, NamesAWorkload) {
  for (const auto& [words, resource] : {std::pair("rs/shop/web", "replicasets"),
                                        {"replicaset.apps/shop/web", "replicasets"},
                                        {"daemonset/shop/web", "daemonsets"},
                                        {"sts/shop/web", "statefulsets"},
                                        {"job/shop/web", "jobs"},
                                        {"jobs.batch/shop/web", "jobs"},
                                        {"cj/shop/web", "cronjobs"},
                                        {"CronJob/shop/web", "cronjobs"},
                                        {"hpa/shop/web", "horizontalpodautoscalers"},
                                        {"horizontalpodautoscaler.autoscaling/shop/web", "horizontalpodautoscalers"},
                                        {"svc/shop/web", "services"},
                                        {"service/shop/web", "services"}}) {
    const auto parsed = parse({"explain", words});
    EXPECT_EQ(explained(parsed).about, ExplainCommand::About::kWorkload) << words;
    EXPECT_EQ(explained(parsed).resource, resource) << words;
    EXPECT_EQ(explained(parsed).name_space, "shop") << words;
    EXPECT_EQ(explained(parsed).name, "web") << words;
  }
}

TEST(Explain, SaysWhichReplacementsWait) {
  Decision waits;
  waits.area = policy::Area::kWorkloads;
  waits.action = "replace";
  waits.by = "daemonset-controller";
  waits.verdict = policy::Verdict::kWaits;
  waits.subject = {.kind = "DaemonSet", .ns = "shop", .name = "hog", .uid = {}};
  waits.reasons = {{ReasonCode::kEvictedInARow,
                    {{"node", std::string("n1")},
                     {"evictions", std::int64_t{5}},
                     {"pods", std::int64_t{1}},
                     {"due_seconds", 80.0}}}};
  const std::string text = explain(waits, std::nullopt, Paint::kNone);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "daemonSet shop/hog: n1 has evicted its pods 5 times in a row; replacements that wait: 1, for 80s");
  waits.verdict = policy::Verdict::kRests;
  waits.reasons = {{ReasonCode::kNothingHeldBack, {{"back_off", std::string("off")}}}};
  EXPECT_NE(explain(waits, std::nullopt, Paint::kNone).find("--eviction-backoff is off"), std::string::npos);
}

TEST(ExplainCommand, SuggestsTheKindThatWasMeant) {
  const auto said = [](const char* what) { return std::get<EarlyExit>(parse({"explain", what})).text; };
  EXPECT_NE(said("jobb/x").find("\"jobb/x\" cannot be explained; did you mean job/x?"), std::string::npos)
      << said("jobb/x");
  EXPECT_NE(said("crojob/x").find("did you mean cronjob/x?"), std::string::npos) << said("crojob/x");
  EXPECT_NE(said("servcie/web").find("did you mean service/web?"), std::string::npos) << said("servcie/web");
  EXPECT_NE(said("hpas/web").find("did you mean horizontalpodautoscaler/web?"), std::string::npos) << said("hpas/web");
  EXPECT_EQ(said("configmap/x").find("did you mean"), std::string::npos) << said("configmap/x");
}

TEST(ExplainCommand, TakesNamesAsKubectlDoes) {
  const auto about = [](const std::vector<const char*>& words) {
    const auto parsed = parse(words);
    const auto* line = std::get_if<CommandLine>(&parsed);
    EXPECT_NE(line, nullptr) << words.back();
    return line == nullptr ? ExplainCommand() : std::get<ExplainCommand>(line->command);
  };
  using About = ExplainCommand::About;
  EXPECT_EQ(about({"explain"}).about, About::kOverview);
  EXPECT_EQ(about({"explain", "--last"}).about, About::kLast);
  EXPECT_EQ(about({"explain", "hog"}).about, About::kPod);
  EXPECT_EQ(about({"explain", "hog"}).name, "hog");
  EXPECT_EQ(about({"explain", "pod", "hog"}).name, "hog");
  EXPECT_EQ(about({"explain", "node", "n1"}).about, About::kNode);
  EXPECT_EQ(about({"explain", "pvc/d"}).resource, "persistentvolumeclaims");
  EXPECT_EQ(about({"explain", "sts", "db"}).resource, "statefulsets");
}

TEST(ExplainCommand, RefusesWhatItCannotExplain) {
  const std::vector<std::vector<const char*>> wrong{
      {"explain", "pods"},       {"explain", "pod", "a", "b"}, {"explain", "pod/"},     {"explain", "secret/x"},
      {"explain", "job.apps/x"}, {"explain", "svc/a/b/c"},     {"explain", "node/a/b"}, {"explain", "--last", "pod/x"}};
  for (const std::vector<const char*>& words : wrong) {
    const auto parsed = parse(words);
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(parsed)) << words.back();
    EXPECT_EQ(std::get<EarlyExit>(parsed).exit_code, kExitUsage);
    EXPECT_EQ(std::ranges::count(std::get<EarlyExit>(parsed).text, '\n'), 1);
  }
}

}  // namespace
}  // namespace spillway::cli
