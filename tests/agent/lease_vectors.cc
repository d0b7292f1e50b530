// vectors/node-agent: lease_timeline. The engine against a server that keeps one lease and fails on order.
#include "agent/contract/options.h"
#include "agent/node/lease_engine.h"
#include "api/exchange/status.h"
#include "api/text/time_text.h"
#include "support/vectors.h"

#include <fmt/format.h>

namespace spillway::agent {
namespace {

using api::Json;
using support::Mismatch;

std::int64_t integer(const Json& in, std::string_view key) {
  return in.find(key)->if_int64().value();
}

api::Response failure(int status) {
  const ErrorCode code = api::error_code_of({}, status);
  return {.status = status,
          .headers = {},
          .body = api::to_text(Json::object({{"kind", "Status"},
                                             {"status", "Failure"},
                                             {"reason", api::reason_text(code)},
                                             {"message", "scripted"},
                                             {"code", status}}))};
}

class Timeline {
 public:
  explicit Timeline(const Json& row)
      : options_(make_options(row)),
        period_(milliseconds(integer(row, "renewIntervalMilliseconds"))),
        now_{Instant(hours(1)), api::parse_time(row.string_at({"startTime"})).value()},
        start_(now_.mono),
        api_("test", Rng(1)),
        engine_({options_.node_name, options_.lease_duration, "?timeout=10s"}, api_, log_, Rng(3)) {
    engine_.when_failing_repeatedly([this] { record_op("onRepeatedHeartbeatFailure"); });
    const std::string_view initial = row.string_at({"initialServerLease"});
    if (initial == "absent") return;
    lease_ = Json::object({{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}});
    lease_.make({"metadata", "resourceVersion"}) = "50";
    if (initial != "present-no-owner") own();
    lease_.make({"spec", "holderIdentity"}) = initial == "present-other-holder" ? "old-node" : options_.node_name;
    lease_.make({"spec", "leaseDurationSeconds"}) = 40;
  }

  Json round(const Json& script) {
    const std::string_view external = script.string_at({"external"});
    if (external == "delete") lease_ = Json();
    if (external.starts_with("update") && !lease_.is_null()) {
      version_ += 3;
      lease_.make({"metadata", "resourceVersion"}) = std::to_string(version_);
      if (external == "update-strip-owner") lease_.erase({"metadata", "ownerReferences"});
    }
    script_ = &script;
    calls_ = 0;
    ops_ = Json::array();
    const std::int64_t started = std::chrono::duration_cast<milliseconds>(elapsed_).count();
    if (!std::exchange(running_, true)) {
      api_.start(now_);
      engine_.start(now_);
    } else {
      wake();
    }
    run_until_idle();
    advance(period_);
    Json result = Json::object({{"startMilliseconds", started}, {"ops", ops_}});
    return result;
  }

 private:
  static AgentOptions make_options(const Json& row) {
    AgentOptions options;
    options.node_name = "node-a";
    options.lease_duration = seconds(integer(row, "leaseDurationSeconds"));
    return options;
  }

  void own() {
    lease_.make({"metadata", "ownerReferences"}) = Json::array({Json::object({{"kind", "Node"}, {"uid", "u"}})});
  }

  void record_op(std::string_view op) { ops_.if_array()->push_back(Json::object({{"op", op}})); }

  void advance(Duration by) {
    elapsed_ += by;
    now_.wall += std::chrono::duration_cast<microseconds>(by);
  }

  /// The engine's own timers run on a clock that jitter moves; what the vectors count is the wall clock.
  void wake() {
    now_.mono = std::max(now_.mono, api_.next_wakeup().value());
    api_.on_wakeup(now_);
  }

  void run_until_idle() {
    for (;;) {
      const std::vector<client::ApiCommand> commands = api_.take_api_commands();
      if (commands.empty()) {
        const Duration wait = api_.next_wakeup().value() - now_.mono;
        if (!is_back_off(wait)) return;  // the next run
        Json op =
            Json::object({{"op", "SLEEP"}, {"milliseconds", std::chrono::duration_cast<milliseconds>(wait).count()}});
        ops_.if_array()->push_back(std::move(op));
        advance(wait);
        wake();
      }
      for (const client::ApiCommand& command : commands) {
        const auto& call = std::get<client::SendCall>(command);
        api_.on_api_event(client::CallDone{call.id, answer(call.request)}, now_);
      }
    }
  }

  /// Back-offs are whole fifths of a second below the jittered period between runs.
  static bool is_back_off(Duration wait) {
    for (Duration step = milliseconds(200); step < seconds(7); step *= 2) {
      if (wait == step) return true;
    }
    return wait == seconds(7);
  }

  Result<api::Response> answer(const api::Request& request) {
    if (request.target.find("/nodes/") != std::string::npos) {
      const bool known = script_->find("nodeGetSucceeds")->if_bool().value();
      record("GET-NODE", known ? "200" : "error", nullptr);
      if (!known) return failure(404);
      return api::Response{200, {}, R"({"kind":"Node","metadata":{"name":"node-a","uid":"u"}})"};
    }
    const Json::Array& faults = *script_->find("faults")->if_array();
    const std::string fault = calls_ < faults.size() ? *faults[calls_].if_string() : std::string();
    ++calls_;
    const std::string_view verb = api::to_string(request.method);
    const Json body = request.document       ? *request.document
                      : request.body.empty() ? Json()
                                             : api::parse_json(request.body).value();
    if (fault == "timeout" || fault == "refused") {
      record(verb, fault, &body);
      return make_error(ErrorCode::kServiceUnavailable, "{}", fault);
    }
    const api::Response response = fault.empty() ? serve(request, body) : failure(std::stoi(fault));
    const bool taken = fault.empty() && request.method == api::Method::kPost && response.status == 409;
    record(verb, taken ? "409-exists" : std::to_string(response.status), &body);
    return response;
  }

  api::Response serve(const api::Request& request, const Json& body) {
    const bool exists = !lease_.is_null();
    if (request.method == api::Method::kGet) {
      return exists ? api::Response{200, {}, api::to_text(lease_)} : failure(404);
    }
    const bool post = request.method == api::Method::kPost;
    if (post && exists) return failure(409);
    if (!post && !exists) return failure(404);
    if (!post && body.string_at({"metadata", "resourceVersion"}) != lease_.string_at({"metadata", "resourceVersion"})) {
      return failure(409);
    }
    lease_ = body;
    lease_.make({"metadata", "resourceVersion"}) = std::to_string(++version_);
    return {post ? 201 : 200, {}, api::to_text(lease_)};
  }

  void record(std::string_view op, std::string_view result, const Json* body) {
    Json entry = Json::object({{"op", op}, {"result", result}});
    if (body != nullptr && !body->is_null()) {
      const Json* owners = body->at({"metadata", "ownerReferences"});
      Json fields =
          Json::object({{"holderIdentity", body->string_at({"spec", "holderIdentity"})},
                        {"leaseDurationSeconds", *body->at({"spec", "leaseDurationSeconds"})},
                        {"ownerReferences",
                         owners == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(owners->if_array()->size())},
                        {"renewTime", body->string_at({"spec", "renewTime"})}});
      const std::string_view version = body->string_at({"metadata", "resourceVersion"});
      fields["resourceVersion"] = version;
      entry["body"] = std::move(fields);
    }
    ops_.if_array()->push_back(std::move(entry));
  }

  AgentOptions options_;
  telemetry::Log log_;
  Duration period_;
  Now now_;
  Instant start_;
  Duration elapsed_{};
  client::ApiClient api_;
  LeaseEngine engine_;

  Json lease_;
  std::int64_t version_ = 100;
  const Json* script_ = nullptr;
  std::size_t calls_ = 0;
  Json ops_;
  bool running_ = false;
};

std::optional<Mismatch> lease_timeline(const Json& row) {
  Timeline timeline(row);
  Json got = Json::array();
  for (const Json& script : *row.find("rounds")->if_array()) got.if_array()->push_back(timeline.round(script));
  Json want = *row.find("expect");
  for (Json& round : *want.if_array()) round.erase({"latestResourceVersion"});  // shows in the next PUT
  return support::compare(want, got);
}

const bool kLease = support::add_vector_check("node-agent/lease_timeline", lease_timeline);

}  // namespace
}  // namespace spillway::agent
