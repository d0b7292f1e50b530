#include "host/process/process_streams.h"

#include "host/cgroup/cgroup_kill.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace spillway::host {

ProcessStreams::ProcessStreams(const ProcessHost& host, ProcessPods& pods)
    : pods_(pods),
      commands_(host.loop, [&events = host.events](agent::RanInContainer answer) { events.emit(std::move(answer)); }),
      ports_(host.loop) {}

const ProcessPod* ProcessStreams::find(const api::PodKey& key, const std::string& uid) const {
  const ProcessPod* pod = std::as_const(pods_).find(key);
  return pod == nullptr || (!uid.empty() && pod->command.uid != uid) ? nullptr : pod;
}

Result<ContainerAccess> ProcessStreams::enter(const api::PodKey& key, const std::string& uid,
                                              const std::string& container, std::vector<std::string> argv) const {
  const ProcessPod* pod = find(key, uid);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod does not exist");
  const auto found = pod->containers.find(container);
  if (found == pod->containers.end())
    return make_error(ErrorCode::kInternalError, "container not found (\"{}\")", container);
  Result<EntryPlan> plan = found->second->entry(std::move(argv));
  if (!plan && plan.error().code == ErrorCode::kNotFound)
    return make_error(ErrorCode::kInternalError, "{}", plan.error().text());
  if (!plan) return plan.error();
  return ContainerAccess{*std::move(plan), found->second->process()};
}

Result<std::shared_ptr<ContainerConsole>> ProcessStreams::console(const api::PodKey& key, const std::string& uid,
                                                                  const std::string& container) const {
  const ProcessPod* pod = find(key, uid);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod does not exist");
  const auto found = pod->containers.find(container);
  if (found == pod->containers.end() || !found->second->is_running())
    return make_error(ErrorCode::kInternalError, "container not found (\"{}\")", container);
  return found->second->console();
}

Result<PortSession::Dial> ProcessStreams::dial(const api::PodKey& key, const std::string& uid) {
  const ProcessPod* pod = find(key, uid);
  if (pod == nullptr) return make_error(ErrorCode::kNotFound, "pod not found");
  if (pod->containers.empty())
    return make_error(ErrorCode::kInternalError, "pod not found (\"{}_{}\")", key.name, key.ns);
  return alive_.guard([this, found = pod->command.uid](std::uint16_t port, PortSession::Answer answer) {
    connect(found, port, std::move(answer));
  });
}

void ProcessStreams::connect(const std::string& uid, std::uint16_t port, PortSession::Answer answer) {
  const ProcessPod* pod = pods_.find(uid);
  if (pod == nullptr || pod->broken) return answer(make_error(ErrorCode::kNotFound, "the pod is gone"));
  PortTarget target{.network = {},
                    .all_of_machine = pod->command.host_network,
                    .processes = tree_pids(pod->cgroup).value_or(std::vector<pid_t>()),
                    .cgroup = "pod" + uid};
  const bool has_network = pod->isolated.namespaces && pod->isolated.namespaces->has_network();
  if (has_network) target.network.reset(::fcntl(pod->isolated.namespaces->network(), F_DUPFD_CLOEXEC, 3));
  if (has_network && !target.network) return answer(errno_error("network of the pod", errno));
  ports_.connect(std::move(target), port, std::move(answer));
}

void ProcessStreams::run(const agent::RunInContainer& command) {
  if (const ContainerProcess* container = pods_.find_container(command.uid, command.container))
    return commands_.run(command, container->entry(command.argv));
  commands_.run(command, make_error(ErrorCode::kNotFound, "container not found (\"{}\")", command.container));
}

}  // namespace spillway::host
