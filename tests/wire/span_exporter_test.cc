// Spans to a collector: in one request, again if it may help, and the last ones before the end.
#include "wire/transport/span_exporter.h"

#include "api/json/json.h"
#include "wire/transport_fixture.h"

#include <gtest/gtest.h>

#include <deque>

namespace spillway::wire {
namespace {

constexpr SpanExporter::Pace kFast{.gather = milliseconds(1), .retry = milliseconds(1)};

telemetry::Span span(std::string name) {
  return {.trace = {1, 2}, .id = 3, .name = std::move(name), .begin = {}, .end = {}, .attributes = {}};
}

/// A collector that answers with the codes it is given, then 200, and the exporter, on one loop.
struct Room {
  explicit Room(std::deque<int> codes) : collector(std::make_unique<ServerRoom>()) {
    collector->run([&] {
      collector->handler.on("/otlp/v1/traces", [this, codes](ScriptedHandler::Seen& seen) mutable {
        requests.push_back(seen.request);
        const int code = codes.empty() ? 200 : codes.front();
        if (!codes.empty()) codes.pop_front();
        seen.sink->on_response({code, {{"Content-Type", "application/json"}}, "{}", {}});
      });
      auto endpoint = SpanExporter::parse_collector(fmt::format("http://127.0.0.1:{}/otlp", collector->port));
      EXPECT_TRUE(endpoint);
      exporter = std::make_unique<SpanExporter>(
          collector->loops.loop(), tracer, telemetry::TracedService{"spillway", "0.1"}, *endpoint,
          telemetry::make_stderr_log(telemetry::Level::kError, telemetry::LogFormat::kLogfmt), kFast);
    });
  }

  ~Room() {
    collector->run([&] { exporter.reset(); });
  }

  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  /// Waits until this number of spans was delivered or lost.
  void wait_for_spans(double count) {
    const auto over = [&] { return outcome("sent") + outcome("dropped") >= count; };
    auto done = std::make_shared<Mailbox<bool>>();
    auto check = std::make_shared<std::function<void()>>();
    *check = [this, over, done, weak = std::weak_ptr(check)] {
      if (over()) return done->put(true);
      collector->loops.loop().at(collector->loops.loop().now().mono + milliseconds(1),
                                 [next = weak.lock()] { (*next)(); });
    };
    collector->run([&] { (*check)(); });
    EXPECT_TRUE(done->take());
  }

  double outcome(std::string_view name) {
    return metrics
        .counter("spillway_trace_spans_total", "Spans that were sent to the collector, or dropped", {{"outcome", name}})
        .value();
  }

  telemetry::Registry metrics;
  telemetry::Tracer tracer{1, 0, metrics};
  std::unique_ptr<ServerRoom> collector;
  std::vector<api::Request> requests;
  std::unique_ptr<SpanExporter> exporter;
};

TEST(SpanExporter, SendsWhatWaitsInOneRequest) {
  Room room({});
  room.collector->run([&] {
    room.tracer.add({span("a"), span("b")});
    room.tracer.add({span("c")});
  });
  room.wait_for_spans(3);
  ASSERT_EQ(room.requests.size(), 1);
  const api::Request& request = room.requests[0];
  EXPECT_EQ(request.method, api::Method::kPost);
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("authorization"), "");
  EXPECT_NE(request.body.find(R"("name":"c")"), std::string::npos);
  EXPECT_EQ(room.outcome("sent"), 3);
}

TEST(SpanExporter, TriesAgainWhereThatMayHelp) {
  Room room({503, 429});
  room.collector->run([&] { room.tracer.add({span("a")}); });
  room.wait_for_spans(1);
  EXPECT_EQ(room.requests.size(), 3);
  EXPECT_EQ(room.requests.front().body, room.requests.back().body);
  EXPECT_EQ(room.outcome("sent"), 1);
}

TEST(SpanExporter, DropsWhatIsRefusedOrFailsTooOften) {
  Room refused({400});
  refused.collector->run([&] { refused.tracer.add({span("a"), span("b")}); });
  refused.wait_for_spans(2);
  EXPECT_EQ(refused.requests.size(), 1);
  EXPECT_EQ(refused.outcome("dropped"), 2);
  Room fails(std::deque<int>(SpanExporter::kTriesMax, 503));
  fails.collector->run([&] { fails.tracer.add({span("a")}); });
  fails.wait_for_spans(1);
  EXPECT_EQ(fails.requests.size(), static_cast<std::size_t>(SpanExporter::kTriesMax));
  EXPECT_EQ(fails.outcome("dropped"), 1);
}

TEST(SpanExporter, TheLastOnesGoBeforeTheEnd) {
  Room room({});
  Mailbox<bool> flushed;
  room.collector->run([&] {
    room.tracer.add({span("a")});
    room.exporter->flush(support::kPatience, [&] { flushed.put(true); });
  });
  EXPECT_TRUE(flushed.take());
  EXPECT_EQ(room.outcome("sent"), 1);
}

TEST(SpanExporter, ACollectorThatIsGoneDoesNotHoldTheEnd) {
  Room room({});
  room.collector->run([&] { room.collector->server.reset(); });
  Mailbox<bool> flushed;
  room.collector->run([&] {
    room.tracer.add({span("a")});
    room.exporter->flush(support::kPatience, [&] { flushed.put(true); });
  });
  EXPECT_TRUE(flushed.take());
  EXPECT_EQ(room.outcome("dropped"), 1);
}

}  // namespace
}  // namespace spillway::wire
