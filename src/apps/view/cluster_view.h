// A blocking view of an API server for programs that read as a sequence: each call runs the loop until the answer is
// there. Thread: main; the loop must not run otherwise.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "client/api_client.h"
#include "client/engine.h"
#include "runtime/engine_driver.h"
#include "runtime/loop.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apps {

class ClusterView {
 public:
  ClusterView(runtime::Loop& loop, std::unique_ptr<client::Transport> transport);
  ~ClusterView();
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  Result<api::Json> get(const std::string& path);
  Result<api::Json> create(const std::string& path, const api::Json& object);
  Result<api::Json> update(const std::string& path, const api::Json& object);
  /// Deletes the object only if it is still equal to `read`.
  Result<api::Json> remove(const std::string& path, const api::Json& read);
  /// The items of a list; empty if it cannot be read at the moment.
  api::Json::Array list(const std::string& path);

 private:
  class Engine;
  Result<api::Json> run(const std::function<void(client::ApiClient&, client::ApiClient::Done)>& call);

  runtime::Loop& loop_;
  std::unique_ptr<client::Transport> transport_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<runtime::EngineDriver> driver_;
};

/// From now on SIGINT and SIGTERM are remembered instead of ending the process, also while no loop runs.
void catch_interrupts();
/// True after Ctrl-C. Every blocking call returns early from then on.
bool interrupted();
/// Runs the loop until something stops it, or, once they are caught, until Ctrl-C.
void run_until_interrupted(runtime::Loop& loop);
/// Runs the loop for this time; returns at once after Ctrl-C.
void pause_for(runtime::Loop& loop, Duration duration);

}  // namespace spillway::apps
