#include "wire/transport/span_exporter.h"

#include "base/alive.h"
#include "wire/client/kubeconfig.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::wire {

namespace {

constexpr HttpClient::Limits kLimits{
    .connections_max = 1, .waiting_max = 4, .body_bytes_max = std::size_t{1} << 20U, .connect_max = seconds(10)};
constexpr int kOk = 200;
constexpr int kNoMore = 300;

/// The statuses after which a collector may accept the same request later.
bool may_retry(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

/// Gets the answer to one batch, on the thread of the connection, and posts it to the loop.
class SpanExporter::Ear final : public HttpClient::Listener {
 public:
  Ear(SpanExporter& exporter, runtime::Loop& loop) : exporter_(exporter), alive_(exporter.alive_.ref()), loop_(loop) {}

  void on_head(const api::Response& head) override { status_ = head.status; }

  void on_data(std::string /*data*/) override {}

  void on_done(std::optional<Error> error) override {
    std::optional<std::string> problem;
    if (error) {
      problem = error->text();
    } else if (status_ < kOk || status_ >= kNoMore) {
      problem = fmt::format("it answered {}", status_);
    }
    const bool again = error.has_value() || may_retry(status_);
    loop_.post(alive_.guard(
        [&exporter = exporter_, problem = std::move(problem), again] { exporter.on_answer(problem, again); }));
  }

 private:
  SpanExporter& exporter_;  // only while alive_
  Alive::Ref alive_;
  runtime::Loop& loop_;
  int status_ = 0;
};

Result<HttpEndpoint> SpanExporter::parse_collector(const std::string& collector) {
  Kubeconfig config;
  config.server = collector;
  return make_endpoint(config, "--otlp-endpoint");
}

SpanExporter::SpanExporter(runtime::Loop& loop, telemetry::Tracer& tracer, telemetry::TracedService service,
                           HttpEndpoint collector, telemetry::Log log, Pace pace)
    : loop_(loop),
      tracer_(tracer),
      service_(std::move(service)),
      log_(std::move(log)),
      pace_(pace),
      io_("spillway-spans"),
      client_(std::make_shared<HttpClient>(io_.loop(), std::move(collector), kLimits)) {
  tracer_.when_waiting([this] { schedule(pace_.gather); });
}

SpanExporter::~SpanExporter() {
  tracer_.when_waiting({});
  if (timer_) loop_.cancel(*timer_);
  io_.stop();
}

void SpanExporter::schedule(Duration after) {
  if (timer_ || in_flight_) return;
  timer_ = loop_.at(loop_.now().mono + after, [this] {
    timer_.reset();
    send();
  });
}

void SpanExporter::send() {
  if (body_.empty()) {
    const std::vector<telemetry::Span> spans = tracer_.take(kBatchMax);
    if (spans.empty()) {
      if (flushed_) std::exchange(flushed_, nullptr)();
      return;
    }
    body_ = telemetry::otlp_body(service_, spans);
    in_body_ = spans.size();
    tries_ = 0;
  }
  in_flight_ = true;
  ++tries_;
  api::Request request{.method = api::Method::kPost,
                       .target = "/v1/traces",
                       .headers = {{"content-type", "application/json"}, {"user-agent", "spillway"}},
                       .body = body_,
                       .document = nullptr};
  io_.loop().post([client = client_, id = ++last_id_, request = std::move(request),
                   ear = std::make_shared<Ear>(*this, loop_)]() mutable {
    client->start(id, std::move(request), HttpClient::Kind::kCall, kAnswerMax, std::move(ear));
  });
}

void SpanExporter::on_answer(const std::optional<std::string>& problem, bool again) {
  in_flight_ = false;
  if (problem && !failing_) log_.warning("spans cannot be delivered", {{"error", *problem}});
  if (!problem && failing_) log_.info("spans are delivered again");
  failing_ = problem.has_value();
  const bool keeps = problem && again && tries_ < kTriesMax && !flushed_;
  if (!keeps) {
    if (problem) {
      tracer_.lost(in_body_);
    } else {
      tracer_.sent(in_body_);
    }
    body_.clear();
  }
  if (flushed_) return problem ? std::exchange(flushed_, nullptr)() : send();
  if (keeps || tracer_.waiting() > 0) schedule(keeps ? pace_.retry : pace_.gather);
}

void SpanExporter::flush(Duration patience, runtime::Loop::Task done) {
  flushed_ = std::move(done);
  loop_.at(loop_.now().mono + patience, alive_.guard([this] {
    if (flushed_) std::exchange(flushed_, nullptr)();
  }));
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  if (!in_flight_) send();
}

}  // namespace spillway::wire
