// Streams into containers of a container runtime (exec, attach, port-forward): the runtime serves them itself, and
// answers with an address. Thread: loop. Bounds: a deadline on every call. Source: Kubernetes docs, "Container Runtime
// Interface (CRI)".
#pragma once

#include "base/error.h"
#include "host/containers/cri_pods.h"
#include "host/cri/cri_calls.h"
#include "host/streams/stream_sessions.h"

#include <functional>
#include <string>
#include <string_view>

namespace spillway::host {

class CriStreams final : public StreamServer {
 public:
  /// Both must outlive this object.
  CriStreams(const CriPods& pods, RuntimeCalls& calls) : pods_(pods), calls_(calls) {}

  Outcome check(StreamWish& wish) override;
  void ask(const StreamWish& wish, std::move_only_function<void(Result<std::string>)> answer) override;

 private:
  static bool has_terminal(const CriPod& pod, std::string_view name);

  const CriPods& pods_;
  RuntimeCalls& calls_;
};

}  // namespace spillway::host
