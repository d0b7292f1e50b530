// Spans on their way to a collector: OTLP over HTTP, some hundred in one request, one request at a time.
// A batch that cannot be delivered is tried kTriesMax times and then dropped; both are counted, and the first failure
// of a row is logged. Thread: loop; the connection lives on a thread of its own. Bounds: those of the Tracer, and one
// batch.
// Source: OpenTelemetry Protocol Specification, "OTLP/HTTP".
#pragma once

#include "base/alive.h"
#include "base/error.h"
#include "runtime/loop.h"
#include "runtime/loop_thread.h"
#include "telemetry/log.h"
#include "telemetry/otlp.h"
#include "telemetry/tracer.h"
#include "wire/client/http_client.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class SpanExporter {
 public:
  static constexpr std::size_t kBatchMax = 512;
  static constexpr int kTriesMax = 4;
  static constexpr Duration kAnswerMax = seconds(10);

  struct Pace {
    Duration gather = seconds(1);  // before a batch is sent
    Duration retry = seconds(5);   // time until a batch is sent again
  };

  /// `collector`: "http://HOST:4318" or with https and a path of its own before /v1/traces. kInvalid: it is neither.
  static Result<HttpEndpoint> parse_collector(const std::string& collector);

  /// Loop and tracer must outlive it.
  SpanExporter(runtime::Loop& loop, telemetry::Tracer& tracer, telemetry::TracedService service, HttpEndpoint collector,
               telemetry::Log log, Pace pace);
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  /// Sends what waits, without a second try; `done` is called when it is over, after `patience` at the latest.
  void flush(Duration patience, runtime::Loop::Task done);

 private:
  class Ear;

  void schedule(Duration after);
  void send();
  void on_answer(const std::optional<std::string>& problem, bool again);

  runtime::Loop& loop_;
  telemetry::Tracer& tracer_;
  telemetry::TracedService service_;
  telemetry::Log log_;
  Pace pace_;
  Alive alive_;
  std::optional<runtime::Loop::TimerId> timer_;
  std::string body_;         // the current batch
  std::size_t in_body_ = 0;  // spans
  int tries_ = 0;
  bool in_flight_ = false;
  bool failing_ = false;
  std::uint64_t last_id_ = 0;
  runtime::Loop::Task flushed_;  // called at the end, when spans were sent or the wait is over
  runtime::LoopThread io_;
  std::shared_ptr<HttpClient> client_;  // used on io_ only
};

}  // namespace spillway::wire
