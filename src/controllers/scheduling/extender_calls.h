// Calls of extenders, as commands that the scheduler's driver carries out over HTTP, and events with the answers. A
// call without an answer within the extender's timeout fails; a later answer is ignored. Any status but 200 is an
// error, redirects included.
// Thread: loop. Bounds: as many calls as the scheduler makes at once.
// Metrics: spillway_scheduler_extender_requests_total{extender,verb,result},
// spillway_scheduler_extender_refusals_total{extender}.
#pragma once

#include "api/exchange/exchange.h"
#include "client/api_client.h"
#include "policy/scheduling/extender.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::controllers {

/// A request to an extender, as JSON.
struct ExtenderCall {
  std::uint64_t id = 0;
  std::size_t extender = 0;  // index of the extender
  scheduling::ExtenderVerb verb{};
  std::string body;
};

class ExtenderCalls {
 public:
  /// The body of a 200 answer; kServiceUnavailable, kTimeout: no answer, with the extender's name and the reason.
  using Done = std::function<void(const Result<std::string>& body, Now now)>;

  ExtenderCalls(client::ApiClient& client, const telemetry::Log& log, telemetry::Registry& metrics,
                std::vector<scheduling::Extender> extenders);
  ExtenderCalls(const ExtenderCalls&) = delete;
  ExtenderCalls& operator=(const ExtenderCalls&) = delete;

  const scheduling::Extender& operator[](std::size_t number) const { return extenders_[number]; }

  std::vector<std::size_t> asked_for(scheduling::ExtenderVerb verb, const api::Pod& pod) const {
    return scheduling::extenders_for(extenders_, verb, pod);
  }

  void ask(std::size_t extender, scheduling::ExtenderVerb verb, const api::Json& question, Now now, Done done);

  std::vector<ExtenderCall> take_calls() { return std::exchange(calls_, {}); }

  void on_answer(std::uint64_t id, const Result<api::Response>& response, Now now);

  /// The extender gave an invalid answer: logs that once, and returns it as an error that names the extender.
  Error disbelieve(std::size_t extender, scheduling::ExtenderVerb verb, const Error& why);
  void count_refusals(std::size_t extender, std::size_t nodes);

 private:
  struct Question {
    std::size_t extender = 0;
    scheduling::ExtenderVerb verb{};
    client::ApiClient::TimerId timer = 0;
    Done done;
  };

  void end(std::uint64_t id, const Result<std::string>& answer, Now now);
  void count(std::size_t extender, scheduling::ExtenderVerb verb, std::string_view result);

  client::ApiClient& client_;
  const telemetry::Log& log_;
  telemetry::Registry& metrics_;
  std::vector<scheduling::Extender> extenders_;
  std::vector<ExtenderCall> calls_;
  std::map<std::uint64_t, Question> asked_;
  std::uint64_t last_id_ = 0;
};

}  // namespace spillway::controllers
