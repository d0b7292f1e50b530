#include "host/process/pod_attachments.h"

#include "base/unique_fd.h"
#include "host/process/pod_maker.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kProcessHandler = "process";  // in RuntimeClasses

}  // namespace

/// The sandbox of a pod is its network namespace; without a network for pods there is nothing to be made.
void PodAttachments::run_sandbox(const agent::RunSandbox& command) {
  const auto answer = [&](std::string problem) {
    host_.events.emit(agent::SandboxRan{command.uid, {}, std::move(problem)});
  };
  if (!command.handler.empty() && command.handler != kProcessHandler)
    return answer(fmt::format("no runtime for \"{}\" is configured: this node runs processes", command.handler));
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return answer(fmt::format("pod {} is unknown", command.uid));
  if (!networks_ || pod->capabilities.is_null()) return answer({});
  if (const Outcome made = maker_.ensure_made(*pod); !made) return answer(made.error().text());
  if (pod->stopping || pods_.is_closing()) return answer("the pod is being stopped");
  attach(*pod);
}

void PodAttachments::attach(ProcessPod& pod) {
  const std::string& uid = pod.command.uid;
  if (!pod.isolated.namespaces || !pod.isolated.namespaces->has_network())
    return report_failure(uid, "it has no network namespace");
  UniqueFd network(::fcntl(pod.isolated.namespaces->network(), F_DUPFD_CLOEXEC, 3));
  if (!network) return report_failure(uid, errno_error("network of the pod", errno).text());
  pod.network = ProcessPod::NetworkState::kAttached;
  networks_->attach(
      {.uid = uid, .pod = pod.command.pod, .capabilities = pod.capabilities, .network = std::move(network)},
      alive_.guard([this, uid](Result<std::vector<std::string>> ips) { on_attached(uid, std::move(ips)); }));
}

void PodAttachments::on_attached(const std::string& uid, Result<std::vector<std::string>> ips) {
  if (ips) return host_.events.emit(agent::SandboxRan{uid, *std::move(ips), {}});
  ProcessPod* pod = pods_.find(uid);
  if (pod != nullptr && pod->network == ProcessPod::NetworkState::kAttached)
    pod->network = ProcessPod::NetworkState::kNone;
  report_failure(uid, ips.error().text());
}

void PodAttachments::report_failure(const std::string& uid, const std::string& why) {
  host_.events.emit(
      agent::SandboxRan{uid, {}, fmt::format("failed to setup network for sandbox \"{}\": {}", uid, why)});
}

void PodAttachments::detach(ProcessPod& pod) {
  if (pod.network != ProcessPod::NetworkState::kAttached) return;
  pod.network = ProcessPod::NetworkState::kDetaching;
  networks_->detach(pod.command.uid, alive_.guard([this, uid = pod.command.uid] {
    ProcessPod* again = pods_.find(uid);
    if (again == nullptr) return;
    again->network = ProcessPod::NetworkState::kDetached;
    on_detached_(uid);
  }));
}

/// A pod whose attachment was not finished, or whose namespaces are gone, has no sandbox: the agent requests one.
void PodAttachments::keep(ProcessPod& pod, agent::FoundPod& found) {
  if (!networks_ || pod.capabilities.is_null() || !pod.made) return;
  auto ips = networks_->keep(pod.command.uid);
  if (!ips) {
    found.has_sandbox = false;
    return;
  }
  pod.network = ProcessPod::NetworkState::kAttached;
  found.ips = *std::move(ips);
}

void PodAttachments::remove_leftovers() {
  if (networks_) networks_->remove_leftovers();
}

void PodAttachments::end() {
  if (networks_) networks_->end();
}

}  // namespace spillway::host
