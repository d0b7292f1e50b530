// The node's own HTTP surface, below TLS and authentication: logs and statistics of containers, health, and pages that
// the agent writes (pods, metrics, configuration, state).
// Thread: loop. Source: spec "Node agent", 12.3.
#pragma once

#include "agent/serving/log_choice.h"
#include "agent/serving/node_request.h"
#include "api/exchange/exchange.h"
#include "api/object/pod.h"
#include "host/files/recording_pages.h"
#include "host/logs/log_reader.h"
#include "host/node_logs.h"
#include "host/pods/pod_runtime.h"
#include "host/streams/stream_sessions.h"
#include "runtime/loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

/// One health check: its name and its result.
struct HealthCheck {
  std::string name;
  std::optional<std::string> problem;
};

class KubeletEndpoint {
 public:
  using RequestId = std::uint64_t;

  /// A page that is written anew for every GET; a row of agent::node_routes() has its path.
  struct Page {
    std::string content_type;
    std::function<std::string()> text;
  };

  struct Options {
    std::map<std::string, Page> pages = {};  // by path: "/pods"
    /// The attempt of a container whose log is meant, or why there is none. Required for logs.
    std::function<Result<std::int32_t>(const api::PodKey&, const std::string& container, agent::LogInstance)>
        choose_log = {};
    /// The checks of /healthz. Absent: healthy as long as the endpoint answers.
    std::function<std::vector<HealthCheck>()> health = {};
    /// The pods that the node has been given, for the images of /runningpods. Absent: none.
    std::function<std::vector<api::Pod>()> known_pods = {};
    /// The pages of the node's recording, which must outlive the endpoint. Null: there are none.
    RecordingPages* recording = nullptr;
    /// Answers for /logs (enableSystemLogHandler, enableSystemLogQuery); nullopt: 405.
    std::optional<NodeLogs::Serves> node_logs = std::nullopt;
    /// The folder for checkpoints of containers (ContainerCheckpoint), made when it is needed; nullopt: 404.
    std::optional<std::string> checkpoint_folder = std::nullopt;
    /// A stream of exec, attach or a forwarded port without data for this long is cut.
    Duration stream_idle_max = StreamSession::kIdleMax;
  };

  KubeletEndpoint(runtime::Loop& loop, PodRuntime& runtime, Options options);

  /// False: the answer is 404, because this endpoint lacks the page or the recording.
  bool serves(const agent::NodeRequest& asked) const;

  /// The answer to a request that agent::NodeRequest::parse refuses: 400, 404.
  static api::Response refusal(const Error& error);

  /// Every check of /healthz, as it is now.
  std::vector<HealthCheck> checks() const;

  /// Answers now or later. The caller has authenticated the client, and authorized it for `asked.access()`.
  RequestId handle(const agent::NodeRequest& asked, const std::shared_ptr<api::ResponseSink>& sink);
  /// The answer is still being written.
  bool is_streaming(RequestId id) const;
  /// The client has disconnected: nothing more is written to its sink.
  void abandon(RequestId id);

 private:
  void handle_health(const api::Target& target, api::ResponseSink& sink) const;
  void handle_logs(RequestId id, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);
  void handle_running_pods(api::ResponseSink& sink) const;
  void handle_summary(const api::Target& target, api::ResponseSink& sink);
  void handle_node_logs(RequestId id, const agent::NodeRequest& asked, const std::shared_ptr<api::ResponseSink>& sink);
  void handle_checkpoint(RequestId id, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);
  void handle_recording(RequestId id, const std::string& path, const std::shared_ptr<api::ResponseSink>& sink);

  runtime::Loop& loop_;
  PodRuntime& runtime_;
  Options options_;
  RequestId last_id_ = 0;
  std::map<RequestId, LogReader::StreamId> streams_;
  std::shared_ptr<std::set<RequestId>> reading_;  // whose recording part is being read, or container written
  std::optional<NodeLogs> node_logs_;             // nullopt until the first request: it has threads
  LogReader logs_;
  StreamSessions sessions_;
};

}  // namespace spillway::host
