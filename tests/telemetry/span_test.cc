// Spans: their names in headers, their text for a collector, which of them are kept.
#include "telemetry/span.h"

#include "telemetry/otlp.h"
#include "telemetry/tracer.h"

#include <gtest/gtest.h>

namespace spillway::telemetry {
namespace {

constexpr std::string_view kHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Traceparent, IsReadAsTheHeaderHasIt) {
  const auto read = parse_traceparent(kHeader);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_hex(read->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(to_hex(read->span), "b7ad6b7169203331");
  EXPECT_TRUE(read->sampled);
  EXPECT_FALSE(parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
  EXPECT_TRUE(parse_traceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-follows"));
}

TEST(Traceparent, WhatNamesNothingIsNone) {
  for (const std::string_view text : {
           "",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",  // a later version
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
           "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01",
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
       }) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

Span span(SpanId id, SpanId parent) {
  return {.trace = {1, 0xabc},
          .id = id,
          .parent = parent,
          .kind = SpanKind::kServer,
          .name = "get \"pods\"",
          .begin = WallTime(microseconds(1'700'000'000'123'456)),
          .end = WallTime(microseconds(1'700'000'000'123'457)),
          .attributes = {{"code", std::int64_t{200}}, {"is", true}, {"path", std::string("/a\nb")}},
          .failed = parent != 0};
}

TEST(Otlp, OneRequestHoldsAllSpans) {
  const Span spans[] = {span(2, 0), span(3, 2)};
  EXPECT_EQ(
      otlp_body({"spillway", "0.1"}, spans),
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"spillway"}},)"
      R"({"key":"service.version","value":{"stringValue":"0.1"}}]},"scopeSpans":[{"scope":{"name":"spillway"},"spans":[)"
      R"({"traceId":"00000000000000010000000000000abc","spanId":"0000000000000002","name":"get \"pods\"","kind":2,)"
      R"("startTimeUnixNano":"1700000000123456000","endTimeUnixNano":"1700000000123457000","attributes":[)"
      R"({"key":"code","value":{"intValue":"200"}},{"key":"is","value":{"boolValue":true}},)"
      R"({"key":"path","value":{"stringValue":"/a\nb"}}]},)"
      R"({"traceId":"00000000000000010000000000000abc","spanId":"0000000000000003","parentSpanId":"0000000000000002",)"
      R"("name":"get \"pods\"","kind":2,"startTimeUnixNano":"1700000000123456000",)"
      R"("endTimeUnixNano":"1700000000123457000","attributes":[{"key":"code","value":{"intValue":"200"}},)"
      R"({"key":"is","value":{"boolValue":true}},{"key":"path","value":{"stringValue":"/a\nb"}}],"status":{"code":2}})"
      R"(]}]}]})");
}

TEST(Tracer, KeepsSoManyAndCountsTheRest) {
  Registry metrics;
  Tracer tracer(1, 0, metrics);
  int woken = 0;
  tracer.when_waiting([&] { ++woken; });
  for (std::size_t i = 0; i < Tracer::kWaitingMax; ++i) tracer.add({span(i + 1, 0)});
  tracer.add({span(1, 0), span(2, 1)});
  EXPECT_EQ(tracer.waiting(), Tracer::kWaitingMax);
  EXPECT_EQ(woken, 1);
  const std::vector<Span> taken = tracer.take(3);
  ASSERT_EQ(taken.size(), 3);
  EXPECT_EQ(taken.back().id, 3);
  tracer.add({span(7, 0), span(8, 7)});
  EXPECT_EQ(tracer.waiting(), Tracer::kWaitingMax - 1);
  EXPECT_EQ(tracer.take(Tracer::kWaitingMax).size(), Tracer::kWaitingMax - 1);
  EXPECT_EQ(tracer.take(1).size(), 0);
  EXPECT_NE(metrics.text().find("spillway_trace_spans_total{outcome=\"dropped\"} 2"), std::string::npos);
}

TEST(Tracer, SlowRequestsAlwaysTheOthersByTheirShare) {
  Registry metrics;
  Tracer none(1, 0, metrics);
  Tracer all(1, 1'000'000, metrics);
  Tracer some(1, 100'000, metrics);
  int wanted = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(none.wants_request(Tracer::kSlow - Duration(1)));
    EXPECT_TRUE(none.wants_request(Tracer::kSlow));
    EXPECT_TRUE(all.wants_request(Duration{}));
    wanted += some.wants_request(Duration{}) ? 1 : 0;
  }
  EXPECT_NEAR(wanted, 1000, 150);
}

}  // namespace
}  // namespace spillway::telemetry
