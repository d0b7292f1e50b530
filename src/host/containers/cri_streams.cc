#include "host/containers/cri_streams.h"

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kStreamAnswerMax = seconds(30);

}  // namespace

Outcome CriStreams::check(StreamWish& wish) {
  const bool ports = wish.what == StreamWish::What::kPorts;
  const CriPod* pod = pods_.find(wish.pod);
  if (pod == nullptr || (!wish.uid.empty() && pod->command.uid != wish.uid))
    return make_error(ErrorCode::kNotFound, "{}", ports ? "pod not found" : "pod does not exist");
  if (ports && pod->sandbox.empty())
    return make_error(ErrorCode::kInternalError, "pod not found (\"{}_{}\")", wish.pod.name, wish.pod.ns);
  if (ports) return {};
  const auto container = pod->containers.find(wish.container);
  const bool runs = container != pod->containers.end() && container->second.running;
  if (!runs && wish.what == StreamWish::What::kExec)
    return make_error(ErrorCode::kInternalError, "container not found (\"{}\")", wish.container);
  if (!runs)
    return make_error(ErrorCode::kInternalError, "container {} not found in pod {}_{}", wish.container, wish.pod.name,
                      wish.pod.ns);
  if (wish.what == StreamWish::What::kAttach) {
    wish.options.tty = has_terminal(*pod, wish.container);  // even if the client expects none
    if (wish.options.tty) wish.options.err = false;
  }
  return {};
}

bool CriStreams::has_terminal(const CriPod& pod, std::string_view name) {
  if (!pod.command.definition) return false;
  const api::PodSpec& spec = pod.command.definition->spec;
  for (const auto* list : {&spec.containers, &spec.init_containers, &spec.ephemeral_containers})
    for (const api::Container& container : *list)
      if (container.name == name) return container.tty;
  return false;
}

void CriStreams::ask(const StreamWish& wish, std::move_only_function<void(Result<std::string>)> answer) {
  const CriPod* pod = pods_.find(wish.pod);
  if (pod == nullptr) return answer(make_error(ErrorCode::kNotFound, "pod does not exist"));
  api::Json request = api::Json::object({});
  std::string_view method = "PortForward";
  if (wish.what == StreamWish::What::kPorts) {
    request["pod_sandbox_id"] = pod->sandbox;
    request["port"] = api::Json::array();
    for (const std::int32_t port : wish.ports) request["port"].if_array()->emplace_back(std::int64_t{port});
  } else {
    const auto container = pod->containers.find(wish.container);
    if (container == pod->containers.end())
      return answer(make_error(ErrorCode::kNotFound, "container not found (\"{}\")", wish.container));
    request["container_id"] = container->second.id;
    const api::StreamOptions& options = wish.options;
    for (const auto& [set, name] : {std::pair(options.tty, "tty"), std::pair(options.in, "stdin"),
                                    std::pair(options.out, "stdout"), std::pair(options.err, "stderr")})
      if (set) request[name] = true;
    method = "Attach";
    if (wish.what == StreamWish::What::kExec) {
      method = "Exec";
      request["cmd"] = api::Json::array();
      for (const std::string& each : wish.argv) request["cmd"].if_array()->emplace_back(each);
    }
  }
  calls_.call(method, std::move(request), kStreamAnswerMax,
              [answer = std::move(answer)](Result<api::Json> served) mutable {
                if (!served) return answer(served.error());
                answer(std::string(served->string_at({"url"})));
              });
}

}  // namespace spillway::host
