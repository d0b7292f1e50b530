// Clients connected to programs of this node's containers: exec, attach, forwarded ports. Connections are upgraded
// here, and counted. Thread: loop. Bounds: kSessionsMax at once. Source: spec "Pod lifecycle", 11.1, 11.4.
#pragma once

#include "api/exchange/exchange.h"
#include "api/object/pod.h"
#include "base/error.h"
#include "host/streams/attach_session.h"
#include "host/streams/channel_session.h"
#include "host/streams/exec_session.h"
#include "host/streams/port_session.h"
#include "host/streams/stream_session.h"
#include "runtime/loop.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::host {

/// A client's request for streams of a pod.
struct StreamWish {
  enum class What { kExec, kAttach, kPorts };

  What what = What::kExec;
  api::PodKey pod;
  std::string uid;                // empty: not given by the client
  std::string container;          // but for kPorts
  std::vector<std::string> argv;  // kExec
  api::StreamOptions options;     // but for kPorts
  std::vector<std::int32_t> ports;
};

/// Port: a container runtime that serves streams itself.
class StreamServer {
 public:
  virtual ~StreamServer() = default;
  /// Checks that the streams can be served; the options become those of the container. kNotFound: there is no such pod;
  /// kInternalError: the container does not run.
  virtual Outcome check(StreamWish& wish) = 0;
  /// Gets the URL at which the stream is served, for one connection.
  virtual void ask(const StreamWish& wish, std::move_only_function<void(Result<std::string>)> answer) = 0;
};

/// Port: access to the containers of this node for streams.
class StreamedContainers {
 public:
  virtual ~StreamedContainers() = default;
  /// `uid`: empty if the client does not give it. kNotFound: there is no such pod; kInternalError: the container does
  /// not run.
  virtual Result<ContainerAccess> enter(const api::PodKey& pod, const std::string& uid, const std::string& container,
                                        std::vector<std::string> argv) = 0;
  /// The streams of a running container; not null. Errors as above.
  virtual Result<std::shared_ptr<ContainerConsole>> console(const api::PodKey& pod, const std::string& uid,
                                                            const std::string& container) const = 0;
  /// The function that connects to ports of the pod; errors as above.
  virtual Result<PortSession::Dial> dial(const api::PodKey& pod, const std::string& uid) = 0;

  /// The server that serves the streams instead; the other functions are not called then. Null: none.
  virtual StreamServer* stream_server() { return nullptr; }
};

class StreamSessions {
 public:
  static constexpr std::size_t kSessionsMax = 256;

  /// `idle_max`: a session without data for this long is cut.
  StreamSessions(runtime::Loop& loop, StreamedContainers& containers, Duration idle_max = StreamSession::kIdleMax)
      : loop_(loop), containers_(containers), idle_max_(idle_max) {}

  ~StreamSessions();
  StreamSessions(const StreamSessions&) = delete;
  StreamSessions& operator=(const StreamSessions&) = delete;

  /// "/exec/NAMESPACE/POD[/UID]/CONTAINER?command=…&input=1…". Refuses, or upgrades the connection.
  void exec(const api::Request& request, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);

  /// Handles "/attach/NAMESPACE/POD[/UID]/CONTAINER?output=1…".
  void attach(const api::Request& request, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);

  /// Handles "/portForward/NAMESPACE/POD[/UID]".
  void forward(const api::Request& request, const api::Target& target, const std::shared_ptr<api::ResponseSink>& sink);

 private:
  struct Upgrade {
    std::shared_ptr<api::UpgradingSink> sink;
    api::Response head;
    std::unique_ptr<api::CommandChannels> channels;
  };

  /// nullopt: the request has been refused.
  std::optional<Upgrade> accept(const api::Request& request, const api::StreamOptions& options,
                                const std::shared_ptr<api::ResponseSink>& sink);
  /// Hands the client on to the server of the runtime.
  void relay(StreamServer& server, const api::Request& request, StreamWish wish,
             const std::shared_ptr<api::ResponseSink>& sink);
  void begin(api::UpgradingSink& sink, api::Response head, const std::shared_ptr<StreamSession>& session);

  runtime::Loop& loop_;
  StreamedContainers& containers_;
  Duration idle_max_;
  std::vector<std::shared_ptr<StreamSession>> sessions_;
  std::shared_ptr<std::size_t> forwards_ = std::make_shared<std::size_t>(0);
};

}  // namespace spillway::host
