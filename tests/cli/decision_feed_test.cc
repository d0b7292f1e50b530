// The lines of `spillway watch`, and their times.
#include "cli/text/decision_feed.h"

#include "api/json/json.h"
#include "api/text/time_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway::cli {
namespace {

using policy::Decision;
using policy::ReasonCode;
using policy::Verdict;
using When = DecisionFeed::When;

Now at(double seconds_since_start) {
  const auto micros = std::chrono::microseconds(static_cast<std::int64_t>(seconds_since_start * 1e6));
  return {Instant(Duration(micros)), *api::parse_time("2026-11-26T06:00:00Z") + micros};
}

struct Sent {
  std::string reason = "Evicted";
  std::string pod = "hog";
  std::string host = "n1";
  std::string uid = "e1";
  std::string last = "2026-11-26T06:00:01Z";
  int count = 1;
  std::string message = "The node was low on resource: memory.";
};

api::Json event(const Sent& sent) {
  return *api::parse_json(fmt::format(
      R"({{"metadata":{{"uid":"{}"}},"reason":"{}","message":"{}","type":"Warning","count":{},"lastTimestamp":"{}",
          "source":{{"component":"kubelet","host":"{}"}},
          "involvedObject":{{"kind":"Pod","namespace":"shop","name":"{}","uid":"u-{}"}}}})",
      sent.uid, sent.reason, sent.message, sent.count, sent.last, sent.host, sent.pod, sent.pod));
}

api::Json node(const std::string& name, const std::string& taints = "", bool ready = true) {
  return *api::parse_json(fmt::format(
      R"({{"metadata":{{"name":"{}","labels":{{"topology.kubernetes.io/zone":"a"}}}},"spec":{{"taints":[{}]}},
          "status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
      name, taints, ready ? "True" : "Unknown"));
}

Decision evicts(const std::string& pod, double when, Verdict verdict = Verdict::kActs) {
  Decision decision{.at = at(when).wall,
                    .by = "n1",
                    .area = policy::Area::kEviction,
                    .verdict = verdict,
                    .action = "evict",
                    .subject = {.kind = "Pod", .ns = "shop", .name = pod, .uid = "u-" + pod}};
  decision.reasons.push_back({ReasonCode::kThresholdMet,
                              {{"signal", std::string("memory.available")},
                               {"available_bytes", std::int64_t{90 << 20}},
                               {"threshold_bytes", std::int64_t{100 << 20}}}});
  if (verdict == Verdict::kWaits) decision.reasons.push_back({ReasonCode::kShadow, {}});
  return decision;
}

std::string lines(DecisionFeed& feed, Now now) {
  const std::vector<Happening> happenings = feed.take(now);
  HappeningLines printed(Paint::kNone);
  for (const Happening& each : happenings) printed.fit(each);
  std::string text;
  for (const Happening& each : happenings) text += printed.line(each);
  return text;
}

/// "REASON SUBJECT SOURCE" of each.
std::string taken(DecisionFeed& feed, Now now) {
  static constexpr const char* kSources[] = {"event", "decision", "node", "zone"};
  std::string text;
  for (const Happening& each : feed.take(now))
    text += fmt::format("{} {} {};", each.reason, each.subject.name, kSources[static_cast<int>(each.source)]);
  return text;
}

TEST(DecisionFeed, AnEventOfAStockNodeIsShown) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_node(node("n1"), at(0));
  feed.on_no_decisions("n1", DecisionFeed::Why::kNoAgent);
  feed.on_event(event({}), When::kNow, at(1));
  EXPECT_EQ(lines(feed, at(1)),
            "2026-11-26T06:00:01Z  n1          Evicted               pod shop/hog          "
            "The node was low on resource: memory.\n");
}

TEST(DecisionFeed, AnAgentsDecisionReplacesTheEvent) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_node(node("n1"), at(0));
  feed.on_decisions("n1", {}, at(0));
  feed.on_event(event({}), When::kNow, at(1));
  EXPECT_EQ(taken(feed, at(1)), "");
  EXPECT_EQ(feed.next_to_ask(at(1)), "n1");
  feed.on_decisions("n1", {evicts("hog", 1)}, at(1.1));
  EXPECT_EQ(lines(feed, at(1.1)),
            "2026-11-26T06:00:01Z  n1          Evicted               pod shop/hog          "
            "memory.available was 90Mi, below its threshold of 100Mi\n");
  EXPECT_EQ(taken(feed, at(60)), "");
}

TEST(DecisionFeed, AnEventAfterItsDecisionIsNotShownAgain) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_decisions("n1", {evicts("hog", 1)}, at(1));
  EXPECT_EQ(taken(feed, at(1)), "Evicted hog decision;");
  feed.on_event(event({}), When::kNow, at(1.1));
  EXPECT_EQ(taken(feed, at(60)), "");
}

TEST(DecisionFeed, AnAgentThatDoesNotAnswerIsNotWaitedForLonger) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_node(node("n1"), at(0));
  feed.on_event(event({}), When::kNow, at(1));
  EXPECT_EQ(taken(feed, at(5.9)), "");
  EXPECT_EQ(taken(feed, at(6)), "Evicted hog event;");
  feed.on_event(event({.pod = "two", .uid = "e2"}), When::kNow, at(7));
  feed.on_no_decisions("n1", DecisionFeed::Why::kNoAnswer);
  EXPECT_EQ(taken(feed, at(7)), "Evicted two event;");
}

TEST(DecisionFeed, AShadowsDecisionDoesNotHideTheKubeletsEviction) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_decisions("n1", {evicts("hog", 1, Verdict::kWaits)}, at(1));
  EXPECT_EQ(taken(feed, at(1)), "WouldBeEvicted hog decision;");
  feed.on_event(event({}), When::kNow, at(2));
  feed.on_decisions("n1", {evicts("hog", 1, Verdict::kWaits)}, at(2));
  EXPECT_EQ(taken(feed, at(60)), "Evicted hog event;");
}

TEST(DecisionFeed, EarlierDecisionsAreNotShown) {
  DecisionFeed feed({}, at(10.7).wall);
  feed.on_no_decisions("n1", DecisionFeed::Why::kNoAgent);
  feed.on_event(event({.uid = "old", .last = "2026-11-26T06:00:09Z"}), When::kBefore, at(11));
  feed.on_event(event({.pod = "edge", .uid = "e2", .last = "2026-11-26T06:00:10Z"}), When::kBefore, at(11));
  feed.on_event(event({.pod = "skewed", .uid = "e3", .last = "2026-11-26T05:59:00Z"}), When::kNow, at(11));
  feed.on_decisions("n2", {evicts("past", 10), evicts("new", 11)}, at(11));
  EXPECT_EQ(taken(feed, at(11)), "Evicted skewed event;Evicted edge event;Evicted new decision;");
}

TEST(DecisionFeed, AListAfterALostWatchShowsOnlyWhatIsNew) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_no_decisions("n1", DecisionFeed::Why::kNoAgent);
  feed.on_event(event({}), When::kNow, at(1));
  feed.on_event(event({}), When::kNow, at(2));
  feed.on_event(event({.count = 2}), When::kNow, at(3));
  feed.on_event(event({.pod = "two", .uid = "e2"}), When::kNow, at(3));
  EXPECT_EQ(taken(feed, at(3)), "Evicted hog event;Evicted hog event;Evicted two event;");
}

TEST(DecisionFeed, EventsWithoutDecisionAreLeftOutUnlessRequested) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_event(event({.reason = "Pulled"}), When::kNow, at(1));
  EXPECT_EQ(taken(feed, at(1)), "");
  DecisionFeed asked({.node = {}, .ns = {}, .pod = {}, .reasons = {"pulled"}}, at(0).wall);
  asked.on_event(event({.reason = "Pulled"}), When::kNow, at(1));
  EXPECT_EQ(taken(asked, at(1)), "Pulled hog event;");
}

TEST(DecisionFeed, ACrashLoopAndARefusalAreListedOnceAndNotAtEachRepetition) {
  DecisionFeed feed({}, at(0).wall);
  for (const int count : {1, 2, 3}) {
    feed.on_event(event({.reason = "BackOff", .uid = "e1", .count = count}), When::kNow, at(count));
    feed.on_event(event({.reason = "FailedCreate", .pod = "set", .host = "", .uid = "e2", .count = count}), When::kNow,
                  at(count));
  }
  feed.on_event(event({.reason = "FailedCreate", .pod = "set", .host = "", .uid = "e3", .message = "another pod"}),
                When::kNow, at(4));
  EXPECT_EQ(taken(feed, at(4)), "BackOff hog event;FailedCreate set event;");
  feed.on_event(event({.reason = "BackOff", .uid = "e4", .last = "2026-11-26T06:30:00Z"}), When::kNow, at(1800));
  EXPECT_EQ(taken(feed, at(1800)), "BackOff hog event;") << "after half an hour without it";
  DecisionFeed asked({.node = {}, .ns = {}, .pod = {}, .reasons = {"BackOff"}}, at(0).wall);
  for (const int count : {1, 2}) {
    asked.on_event(event({.reason = "BackOff", .uid = "e1", .count = count}), When::kNow, at(count));
  }
  EXPECT_EQ(taken(asked, at(3)), "BackOff hog event;BackOff hog event;");
}

api::Json node_event(const std::string& reason, const std::string& last, const std::string& uid, int count = 1) {
  return *api::parse_json(fmt::format(
      R"({{"metadata":{{"uid":"{}"}},"reason":"{}","message":"said","type":"Normal","count":{},"lastTimestamp":"{}",
          "involvedObject":{{"kind":"Node","name":"n1"}}}})",
      uid, reason, count, last));
}

TEST(DecisionFeed, AKubeletsStartIsNoDecisionButTheEndOfAPressureIs) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_event(node_event("NodeHasSufficientPID", "2026-11-26T06:00:01Z", "a"), When::kNow, at(1));
  feed.on_event(node_event("NodeHasNoDiskPressure", "2026-11-26T06:00:02Z", "b"), When::kNow, at(2));
  EXPECT_EQ(taken(feed, at(2)), "");
  feed.on_event(node_event("NodeHasDiskPressure", "2026-11-26T06:00:03Z", "c"), When::kNow, at(3));
  feed.on_event(node_event("NodeHasNoDiskPressure", "2026-11-26T06:00:04Z", "b", 2), When::kNow, at(4));
  EXPECT_EQ(taken(feed, at(4)), "NodeHasDiskPressure n1 event;NodeHasNoDiskPressure n1 event;");
  DecisionFeed asked({.node = {}, .ns = {}, .pod = {}, .reasons = {"NodeHasSufficientPID"}}, at(0).wall);
  asked.on_event(node_event("NodeHasSufficientPID", "2026-11-26T06:00:01Z", "a"), When::kNow, at(1));
  EXPECT_EQ(taken(asked, at(1)), "NodeHasSufficientPID n1 event;");
}

TEST(DecisionFeed, CustomKindsAreNeitherPodsNorNodes) {
  const auto of_custom_kind = [](api::Json sent) {
    sent.make({"involvedObject", "apiVersion"}) = "example.com/v1";
    return sent;
  };
  DecisionFeed of_pod({.node = {}, .ns = {}, .pod = "hog", .reasons = {}}, at(0).wall);
  of_pod.on_event(of_custom_kind(event({.uid = "e1"})), When::kNow, at(1));
  EXPECT_EQ(taken(of_pod, at(1)), "");
  of_pod.on_event(event({.uid = "e2"}), When::kNow, at(2));
  EXPECT_NE(taken(of_pod, at(20)), "");
  DecisionFeed feed({}, at(0).wall);
  feed.on_event(of_custom_kind(node_event("NodeHasDiskPressure", "2026-11-26T06:00:03Z", "c")), When::kNow, at(3));
  EXPECT_EQ(taken(feed, at(3)), "NodeHasDiskPressure n1 event;");
  feed.on_event(node_event("NodeHasNoDiskPressure", "2026-11-26T06:00:04Z", "b"), When::kNow, at(4));
  EXPECT_EQ(taken(feed, at(4)), "") << "the node had no pressure";
  EXPECT_EQ(happening_of(of_custom_kind(event({})))->subject.kind, "Pod.example.com");
}

TEST(DecisionFeed, AStartBeforeThePressureIsNotItsEnd) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_node(*api::parse_json(R"({"metadata":{"name":"n1"},"spec":{},"status":{"conditions":[{"type":"MemoryPressure",
      "status":"True","lastTransitionTime":"2026-11-26T06:00:30Z"}]}})"),
               at(60));
  feed.on_event(node_event("NodeHasSufficientMemory", "2026-11-26T06:00:10Z", "a"), When::kBefore, at(60));
  EXPECT_EQ(taken(feed, at(60)), "");
  feed.on_event(node_event("NodeHasSufficientMemory", "2026-11-26T06:01:10Z", "a", 2), When::kNow, at(70));
  EXPECT_EQ(taken(feed, at(70)), "NodeHasSufficientMemory n1 event;");
}

TEST(DecisionFeed, ThePastIsInOrderOfTimeAcrossNodesAndSources) {
  DecisionFeed feed({}, at(0).wall);
  feed.collect_until(at(70).mono);
  feed.on_node(node("n1"), at(60));
  feed.on_node(node("n2"), at(60));
  feed.on_event(event({.pod = "third", .host = "", .uid = "e3", .last = "2026-11-26T06:00:03Z"}), When::kBefore,
                at(60));
  feed.on_event(event({.pod = "first", .host = "n2", .uid = "e1", .last = "2026-11-26T06:00:01Z"}), When::kBefore,
                at(60));
  feed.on_decisions("n1", {evicts("second", 2), evicts("fourth", 4)}, at(60));
  EXPECT_EQ(taken(feed, at(60)), "") << "the lists are not complete, and n2 has not answered";
  feed.on_listed();
  EXPECT_EQ(taken(feed, at(60.1)), "") << "n2 has not answered";
  feed.on_decisions("n2", {}, at(60.2));
  EXPECT_EQ(taken(feed, at(60.2)),
            "Evicted first event;Evicted second decision;Evicted third event;Evicted fourth decision;");
  feed.on_event(event({.pod = "later", .host = "", .uid = "e5", .last = "2026-11-26T06:01:01Z"}), When::kNow, at(61));
  EXPECT_EQ(taken(feed, at(61)), "Evicted later event;");
}

TEST(DecisionFeed, ANodeThatIsSilentDoesNotHoldThePastBackForever) {
  DecisionFeed feed({}, at(0).wall);
  feed.collect_until(at(70).mono);
  feed.on_node(node("n1"), at(60));
  feed.on_listed();
  feed.on_event(event({}), When::kBefore, at(60));
  EXPECT_EQ(taken(feed, at(69.9)), "");
  EXPECT_EQ(taken(feed, at(70)), "Evicted hog event;");
}

TEST(HappeningLines, ColumnsAlignWhateverTheNamesAre) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_no_decisions("a-node-with-a-long-name", DecisionFeed::Why::kNoAgent);
  feed.on_no_decisions("n1", DecisionFeed::Why::kNoAgent);
  feed.on_event(event({.reason = "UnexpectedAdmissionError", .host = "a-node-with-a-long-name", .uid = "a"}),
                When::kNow, at(1));
  feed.on_event(event({.pod = "a-pod-with-a-name-of-its-own", .uid = "b"}), When::kNow, at(1));
  const std::string text = lines(feed, at(1));
  const std::size_t second = text.find('\n') + 1;
  for (const std::string_view cell : {"pod shop/", "The node was low"})
    EXPECT_EQ(text.find(cell), text.find(cell, second) - second) << text;
}

TEST(DecisionFeed, ReasonsOfDecisionsAreCodes) {
  DecisionFeed feed({.node = {}, .ns = {}, .pod = {}, .reasons = {"shadow"}}, at(0).wall);
  feed.on_decisions("n1", {evicts("hog", 1), evicts("two", 2, Verdict::kWaits)}, at(3));
  EXPECT_EQ(taken(feed, at(3)), "WouldBeEvicted two decision;");
}

TEST(DecisionFeed, OnlyThatNodePodOrNamespace) {
  for (const auto& [filter, count] : std::vector<std::pair<HappeningFilter, std::size_t>>{{{"n1", "", "", {}}, 3},
                                                                                          {{"n2", "", "", {}}, 0},
                                                                                          {{"", "shop", "", {}}, 2},
                                                                                          {{"", "other", "", {}}, 0},
                                                                                          {{"", "", "hog", {}}, 1},
                                                                                          {{"", "shop", "two", {}}, 1},
                                                                                          {{"", "", "", {}}, 3}}) {
    DecisionFeed feed(filter, at(0).wall);
    feed.on_node(node("n1"), at(0));
    feed.on_no_decisions("n1", DecisionFeed::Why::kNoAgent);
    feed.on_event(event({}), When::kNow, at(1));
    feed.on_event(event({.pod = "two", .uid = "e2"}), When::kNow, at(1));
    feed.on_node(node("n1", R"({"key":"node.kubernetes.io/unreachable","effect":"NoExecute"})"), at(2));
    EXPECT_EQ(feed.take(at(2)).size(), count);
  }
}

TEST(DecisionFeed, AControllersEventIsOfTheNodeOfThePod) {
  DecisionFeed feed({.node = "n1", .ns = {}, .pod = {}, .reasons = {}}, at(0).wall);
  feed.on_pod_of_node(*api::parse_json(R"({"metadata":{"namespace":"shop","name":"hog"}})"));
  feed.on_event(event({.reason = "TaintManagerEviction", .host = ""}), When::kNow, at(1));
  feed.on_event(event({.reason = "TaintManagerEviction", .pod = "two", .host = "", .uid = "e2"}), When::kNow, at(1));
  EXPECT_EQ(taken(feed, at(60)), "TaintManagerEviction hog event;");
}

TEST(DecisionFeed, TaintsThatEvictAreDecisions) {
  DecisionFeed feed({}, at(0).wall);
  const std::string unreachable = R"({"key":"node.kubernetes.io/unreachable","effect":"NoExecute"})";
  feed.on_node(node("n1", R"({"key":"was","effect":"NoExecute"})"), at(0));
  EXPECT_EQ(taken(feed, at(0)), "");
  feed.on_node(node("n1", unreachable + R"(,{"key":"quiet","effect":"NoSchedule"})"), at(1));
  EXPECT_EQ(lines(feed, at(1)),
            "2026-11-26T06:00:01Z  n1          Tainted               node n1               "
            "node.kubernetes.io/unreachable:NoExecute: pods without a toleration are evicted\n"
            "2026-11-26T06:00:01Z  n1          Untainted             node n1               was:NoExecute: its pods may "
            "stay\n");
}

TEST(DecisionFeed, StatesAndHoldsOfZones) {
  const auto zones = [](const std::string& state, const std::string& brake, const std::string& top = "") {
    return *api::parse_json(
        fmt::format(R"({{"masterDisruption":false{},"items":[{{"zone":"a","state":"{}"{}}}]}})", top, state, brake));
  };
  const std::string held = R"(,"brake":{"code":"manual-hold","facts":[{"name":"why","value":"racks"}]})";
  DecisionFeed feed({}, at(0).wall);
  feed.on_zones(zones("Normal", ""), at(0));
  EXPECT_EQ(taken(feed, at(0)), "");
  feed.on_zones(zones("PartialDisruption", ""), at(1));
  EXPECT_EQ(taken(feed, at(1)), "PartialDisruption a zone;");
  feed.on_zones(zones("PartialDisruption", held), at(2));
  EXPECT_EQ(lines(feed, at(2)),
            "2026-11-26T06:00:02Z  zone a      Held                  zone a                everything is held by hand: "
            "racks\n");
  feed.on_zones(zones("PartialDisruption", held, held), at(3));
  EXPECT_EQ(taken(feed, at(3)), "Held all zone;Resumed a zone;");
  feed.on_zones(zones("Normal", ""), at(4));
  EXPECT_EQ(taken(feed, at(4)), "Resumed all zone;Normal a zone;");
}

TEST(DecisionFeed, EachNodeInItsTurnAndNoNodeTooOften) {
  DecisionFeed feed({}, at(0).wall);
  for (const char* name : {"n1", "n2", "n3"}) feed.on_node(node(name), at(0));
  feed.on_node(node("gone", "", false), at(0));
  for (const char* name : {"n1", "n2", "n3"}) EXPECT_EQ(feed.next_to_ask(at(1)), name);
  EXPECT_EQ(feed.next_to_ask(at(1)), std::nullopt);
  feed.on_decisions("n1", {}, at(1));
  feed.on_no_decisions("n2", DecisionFeed::Why::kNoAgent);
  EXPECT_EQ(feed.next_to_ask(at(2.9)), std::nullopt);
  EXPECT_EQ(feed.next_to_ask(at(3)), "n1");
  EXPECT_EQ(feed.next_to_ask(at(4)), std::nullopt);
  EXPECT_EQ(feed.next_to_ask(at(301)), "n2");
}

TEST(DecisionFeed, MemoryIsBounded) {
  DecisionFeed feed({}, at(0).wall);
  feed.on_node(node("n1"), at(0));
  const std::size_t too_many = DecisionFeed::kWaitingMax + 5;
  for (std::size_t i = 0; i < too_many; ++i)
    feed.on_event(event({.pod = fmt::format("p{}", i), .uid = fmt::format("e{}", i)}), When::kNow, at(1));
  EXPECT_EQ(feed.take(at(1)).size(), 5U);
  EXPECT_EQ(feed.take(at(6)).size(), DecisionFeed::kWaitingMax);
}

TEST(HappeningLine, IsOneLineWithoutWhatATerminalObeys) {
  const auto happening = happening_of(event({.message = R"(two\nlines \u001b[31mred\u009b2J)"}));
  ASSERT_TRUE(happening);
  const std::string line = HappeningLines(Paint::kNone).line(*happening);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_FALSE(line.contains('\x1b')) << line;
  EXPECT_FALSE(line.contains("\xc2\x9b")) << line;
  EXPECT_TRUE(HappeningLines(Paint::kTerminal).line(*happening).contains("\x1b[31mEvicted"));
}

TEST(HappeningLine, EventsOfTheNewApiHaveTheirTimeAndCountElsewhere) {
  const auto happening = happening_of(*api::parse_json(
      R"({"reason":"Preempted","eventTime":"2026-11-26T06:00:01.5Z","lastTimestamp":null,"reportingComponent":"default-scheduler",
          "series":{"count":3,"lastObservedTime":"2026-11-26T06:00:09.25Z"},"involvedObject":{"kind":"Pod","namespace":"a","name":"b"}})"));
  ASSERT_TRUE(happening);
  EXPECT_EQ(HappeningLines(Paint::kNone).line(*happening),
            "2026-11-26T06:00:09Z  -           Preempted             pod a/b x3\n");
  const auto json = api::parse_json(api::to_text(happening_json(*happening)));
  ASSERT_TRUE(json);
  EXPECT_EQ(json->string_at({"at"}), "2026-11-26T06:00:09.250000Z");
  EXPECT_EQ(json->string_at({"source"}), "event");
  EXPECT_EQ(json->find("count")->if_int64(), 3);
}

TEST(HappeningLine, AShortageIsADecisionWhateverTheResource) {
  EXPECT_TRUE(reports_decision("OutOfmemory"));
  EXPECT_TRUE(reports_decision("OutOfnvidia.com/gpu"));
  EXPECT_FALSE(reports_decision("Pulled"));
  EXPECT_FALSE(happening_of(*api::parse_json(R"({"reason":"Evicted"})")));
}

}  // namespace
}  // namespace spillway::cli
