#include "agent/pods/pod_sandbox.h"

#include "agent/containers/pod_resources.h"
#include "agent/pods/container_plan.h"
#include "agent/pods/pod_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kSandboxRetry = seconds(10);
constexpr std::array<std::string_view, 7> kImageReasons = {
    "ErrImagePull",     "ImagePullBackOff",    "ErrImageNeverPull",        "ImageInspectError",
    "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kSecretTypes = {
    {{".dockerconfigjson", "kubernetes.io/dockerconfigjson"}, {".dockercfg", "kubernetes.io/dockercfg"}}};

}  // namespace

void add_pull_secrets(const api::Pod& pod, std::set<DataReference>& references) {
  for (const api::SecretReference& each : pod.spec.image_pull_secrets) {
    if (!each.name.empty()) references.insert({DataReference::Kind::kSecret, each.name});
  }
}

std::vector<PullSecret> pull_secrets_of(const api::Pod& pod, const EnvSources& sources) {
  std::vector<PullSecret> found;
  for (const api::SecretReference& each : pod.spec.image_pull_secrets) {
    const auto source = sources.find({DataReference::Kind::kSecret, each.name});
    if (source == sources.end()) continue;
    for (const auto& [key, type] : kSecretTypes) {
      const auto value = source->second.find(std::string(key));
      if (value != source->second.end()) found.push_back({std::string(type), value->second});
    }
  }
  return found;
}

bool is_image_problem(std::string_view reason) {
  return std::ranges::find(kImageReasons, reason) != kImageReasons.end();
}

PodAddresses PodWorkers::addresses_of(const PodWorker& worker) const {
  PodAddresses addresses{context_.machine.internal_ip, context_.machine.internal_ip};
  if (!has_pod_network(*worker.pod, context_.machine)) return addresses;
  addresses.pod_ips = in_order_of_family(worker.pod_ips, context_.machine.internal_ip);
  addresses.pod_ip = addresses.pod_ips.empty() ? std::string() : addresses.pod_ips.front();
  return addresses;
}

bool PodWorkers::has_sandbox(PodWorker& worker, Now now) {
  if (!worker.needs_sandbox || worker.sandbox == PodSandbox::kRuns) return true;
  if (worker.sandbox == PodSandbox::kAsked) return false;
  if (worker.sandbox == PodSandbox::kLost) {
    if (holds_container(worker)) return false;
    if (const auto delay = worker.sandbox_back_off.ask(now.mono, worker.sandbox_lost_at)) {
      arm_retry(worker, *worker.sandbox_lost_at + *delay);
      return false;
    }
    repeat_init_containers(worker);
  }
  worker.sandbox = PodSandbox::kAsked;
  ask_for_sandbox(worker);
  return false;
}

/// The RuntimeClass is read on every attempt: it may be created after the pod.
void PodWorkers::ask_for_sandbox(const PodWorker& worker) {
  const std::string& name = worker.pod->spec.runtime_class_name;
  if (name.empty()) {
    context_.host_commands.emplace_back(RunSandbox{worker.uid()});
    return;
  }
  context_.api.get(client::object_path("node.k8s.io/v1", "runtimeclasses", {}, name),
                   [this, uid = worker.uid(), name](const Result<api::Json>& answer, Now now) {
                     PodWorker* again = find(uid);
                     if (again == nullptr || again->phase != WorkerPhase::kSyncing) return;
                     if (answer) {
                       again->handler = answer->string_at({"handler"});
                       context_.host_commands.emplace_back(RunSandbox{uid, again->handler});
                     } else if (answer.error().code == ErrorCode::kNotFound) {
                       fail_sandbox(*again, fmt::format("runtimeclass.node.k8s.io \"{}\" not found", name), now);
                     } else {
                       fail_sandbox(*again, answer.error().message, now);
                     }
                   });
}

void PodWorkers::fail_sandbox(PodWorker& worker, const std::string& problem, Now now) {
  record(worker, {}, client::EventType::kWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + problem,
         now);
  context_.api.at(now.mono + kSandboxRetry, [this, uid = worker.uid()](Now then) {
    PodWorker* again = find(uid);
    if (again == nullptr || again->phase != WorkerPhase::kSyncing) return;
    again->sandbox = PodSandbox::kNone;
    sync(*again, then);
  });
}

void PodWorkers::on_sandbox_ran(const SandboxRan& event, Now now) {
  PodWorker* worker = find(event.uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kSyncing) return;
  if (!event.problem.empty()) return fail_sandbox(*worker, event.problem, now);
  worker->sandbox = PodSandbox::kRuns;
  worker->sandbox_ran_at = now.mono;
  worker->pod_ips = event.ips;
  sync(*worker, now);
}

/// All containers end with the sandbox; the next sandbox is made when a container is to be started.
void PodWorkers::on_sandbox_lost(const SandboxLost& event, Now now) {
  if (const auto found = found_.find(event.uid); found != found_.end()) found->second.has_sandbox = false;
  PodWorker* worker = find(event.uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kSyncing || worker->sandbox != PodSandbox::kRuns) return;
  worker->sandbox = PodSandbox::kLost;
  worker->sandbox_lost_at = now.mono;
  context_.log.info("pod lost its sandbox", {{"pod", worker->pod->key().text()}, {"pod_uid", event.uid}});
  sync(*worker, now);
  if (worker->phase != WorkerPhase::kSyncing) return;  // nothing of it is to run again
  record(*worker, {}, client::EventType::kNormal, "SandboxChanged",
         "Pod sandbox changed, it will be killed and re-created.", now);
}

void PodWorkers::on_notice(const PodNotice& notice, Now now) {
  const PodWorker* worker = find(notice.uid);
  if (worker == nullptr) return;
  const bool warns = notice.weight == PodNotice::Weight::kWarning;
  record(*worker, notice.container, warns ? client::EventType::kWarning : client::EventType::kNormal, notice.reason,
         notice.message, now);
}

}  // namespace spillway::agent
