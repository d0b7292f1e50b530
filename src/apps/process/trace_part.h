// Sends the spans of a process, including the last ones before the process ends. Thread: loop.
#pragma once

#include "apps/process/process.h"
#include "telemetry/log.h"
#include "telemetry/otlp.h"
#include "telemetry/tracer.h"
#include "wire/transport/span_exporter.h"

#include <utility>

namespace spillway::apps {

class TracePart final : public Part {
 public:
  TracePart(runtime::Loop& loop, telemetry::Tracer& tracer, telemetry::TracedService service,
            wire::HttpEndpoint collector, telemetry::Log log)
      : exporter_(loop, tracer, std::move(service), std::move(collector), std::move(log), {}) {}

  void stop(runtime::Loop::Task done) override { exporter_.flush(kPatience, std::move(done)); }

 private:
  static constexpr Duration kPatience = seconds(2);

  wire::SpanExporter exporter_;
};

}  // namespace spillway::apps
