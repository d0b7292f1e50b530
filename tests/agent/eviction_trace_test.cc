// An eviction as a trace: from the reading to the end of the pod, and only if both are known.
#include "agent/contract/eviction_trace.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using telemetry::Span;

struct Lines final : Journal {
  void append(const JournalLine& line) override { lines.push_back(line); }

  std::vector<JournalLine> lines;
};

WallTime at(int ms) {
  return WallTime(seconds(1'700'000'000) + milliseconds(ms));
}

JournalEntry evicted(const std::string& uid, int decided_ms) {
  JournalEntry entry;
  entry.decision.at = at(decided_ms);
  entry.decision.by = "n1";
  entry.decision.reasons = {{policy::ReasonCode::kThresholdMet, {{"signal", std::string("memory.available")}}},
                            {policy::ReasonCode::kEmergency, {}}};
  entry.emergency = true;
  entry.eviction = eviction::EvictPod{.uid = uid,
                                      .pod = {"shop", "cart"},
                                      .grace_period_seconds = 0,
                                      .message = {},
                                      .annotations = {},
                                      .disruption_target = true,
                                      .metric_label = "memory.available"};
  entry.times = EvictionTimes{.reading = at(0), .reading_to_signal = {}};
  return entry;
}

Aftermath gone(const std::string& uid, int ms) {
  return {.uid = uid, .at = at(ms), .facts = {{std::string(kGoneAfterFact), 0.01}}};
}

class EvictionTraces : public ::testing::Test {
 protected:
  telemetry::Registry metrics;
  telemetry::Tracer tracer{1, 0, metrics};
  Lines lines;
  EvictionTrace trace{lines, tracer};
};

void expect_span(const Span& span, std::string_view name, int begin_ms, int end_ms) {
  EXPECT_EQ(span.name, name);
  EXPECT_EQ(span.begin, at(begin_ms)) << name;
  EXPECT_EQ(span.end, at(end_ms)) << name;
}

TEST_F(EvictionTraces, ADecisionOfTheEngine) {
  trace.append(evicted("u1", 4));
  EXPECT_EQ(tracer.waiting(), 0);
  trace.append(gone("u1", 60));
  const std::vector<Span> spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 3);
  expect_span(spans[0], "eviction", 0, 60);
  expect_span(spans[1], "decide", 0, 4);
  expect_span(spans[2], "stop", 4, 60);
  EXPECT_EQ(spans[0].parent, 0);
  for (const Span& span : {spans[1], spans[2]}) {
    EXPECT_EQ(span.parent, spans[0].id);
    EXPECT_EQ(span.trace, spans[0].trace);
  }
  std::map<std::string, std::string> texts;
  for (const telemetry::Attribute& each : spans[0].attributes) {
    if (const auto* text = std::get_if<std::string>(&each.value)) texts[each.name] = *text;
  }
  EXPECT_EQ(texts["k8s.node.name"], "n1");
  EXPECT_EQ(texts["k8s.namespace.name"] + "/" + texts["k8s.pod.name"], "shop/cart");
  EXPECT_EQ(texts["spillway.reasons"], "threshold-met signal=memory.available; emergency");
  EXPECT_EQ(lines.lines.size(), 2) << "the journal has every line";
}

TEST_F(EvictionTraces, WhereTheMachineActedFirst) {
  JournalEntry entry = evicted("u1", 9);
  entry.times->reading_to_signal = milliseconds(2);
  trace.append(entry);
  trace.append(gone("u1", 60));
  const std::vector<Span> spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 4);
  expect_span(spans[0], "eviction", 0, 60);
  expect_span(spans[1], "react", 0, 2);
  expect_span(spans[2], "decide", 2, 9);
  expect_span(spans[3], "stop", 2, 60);
}

/// Over a limit of local storage, for example.
TEST_F(EvictionTraces, WithoutTheTimeOfAReadingItBeginsWithTheDecision) {
  JournalEntry entry = evicted("u1", 4);
  entry.times.reset();
  trace.append(entry);
  trace.append(gone("u1", 60));
  const std::vector<Span> spans = tracer.take(10);
  ASSERT_EQ(spans.size(), 2);
  expect_span(spans[0], "eviction", 4, 60);
  expect_span(spans[1], "stop", 4, 60);
}

TEST_F(EvictionTraces, WhatHasNoEndOrWasNotOursLeavesNone) {
  JournalEntry intent = evicted("u1", 4);
  intent.intent = true;
  JournalEntry shadow = evicted("u2", 4);
  shadow.eviction.reset();
  for (const JournalEntry& entry : {intent, shadow}) trace.append(entry);
  for (const char* uid : {"u1", "u2", "other"}) trace.append(gone(uid, 60));
  trace.append(evicted("u4", 4));
  trace.append(Aftermath{.uid = "u4", .at = at(5), .facts = {{"freed_bytes", std::int64_t{7}}}});
  EXPECT_EQ(tracer.waiting(), 0);
  trace.append(gone("u4", 60));
  trace.append(gone("u4", 61));
  EXPECT_EQ(tracer.waiting(), 3) << "once";
}

TEST_F(EvictionTraces, TheOldestIsForgotten) {
  for (std::size_t i = 0; i <= EvictionTrace::kOpenMax; ++i) trace.append(evicted("u" + std::to_string(i), 4));
  trace.append(gone("u0", 60));
  EXPECT_EQ(tracer.waiting(), 0);
  trace.append(gone("u1", 60));
  EXPECT_EQ(tracer.waiting(), 3);
}

}  // namespace
}  // namespace spillway::agent
