// An API server of a few lines, for tests of engines: objects by path, list and watch with field selectors, the three
// kinds of write an agent makes. Faults are injected by the test.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "client/api_client.h"
#include "client/engine.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

class ScriptedApi {
 public:
  /// An answer in place of the real one; nullopt: the request is answered as usual.
  using Fault = std::function<std::optional<Result<api::Response>>(const api::Request& request)>;

  /// The answer to a command, if it has one, and frames for open watches it causes.
  std::vector<client::ApiEvent> handle(const client::ApiCommand& command);

  /// Writes an object as another client would; returns frames for open watches.
  std::vector<client::ApiEvent> put(api::Json object);
  std::vector<client::ApiEvent> remove(const std::string& path);

  /// nullptr: there is no such object. "/api/v1/nodes/n1".
  const api::Json* find(const std::string& path) const;
  /// Objects below a collection path.
  std::vector<api::Json> all(std::string_view collection) const;

  void set_fault(Fault fault) { fault_ = std::move(fault); }

  /// Ends every watch with this error.
  std::vector<client::ApiEvent> break_watches(const Error& error);

  /// "PATCH /api/v1/nodes/n1/status", in order.
  const std::vector<std::string>& log() const { return log_; }

  const std::vector<api::Request>& requests() const { return requests_; }

  /// HTTP statuses of the answers, in the order of the requests; 0: there was none.
  const std::vector<int>& statuses() const { return statuses_; }

  static std::string path_of(const api::Json& object);

 private:
  struct Watch {
    std::string resource;  // "pods"
    std::string field;     // "spec.nodeName"
    std::string value;
  };

  Result<api::Response> answer(const api::Request& request, std::vector<client::ApiEvent>& events);
  api::Response create(const std::string& path, const api::Request& request, std::vector<client::ApiEvent>& events);
  api::Response patch(const std::string& path, const api::Request& request, std::vector<client::ApiEvent>& events);
  void store(const std::string& path, api::Json object, std::vector<client::ApiEvent>& events);
  void announce(std::string_view type, const api::Json& object, std::vector<client::ApiEvent>& events) const;
  static bool selects(const Watch& watch, const api::Json& object);
  static Watch watch_of(const api::Target& target);

  std::map<std::string, api::Json> objects_;
  std::map<client::CallId, Watch> watches_;
  std::vector<std::string> log_;
  std::vector<api::Request> requests_;
  std::vector<int> statuses_;
  Fault fault_;
  std::int64_t version_ = 100;
};

}  // namespace spillway::agent
