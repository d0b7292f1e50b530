#include "host/containers/cri_sandboxes.h"

#include "host/containers/cri_container_ends.h"
#include "host/containers/cri_pod_ends.h"
#include "host/containers/cri_run.h"
#include "host/files/resolver_file.h"

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

namespace spillway::host {

enum class SandboxStartStep : std::uint8_t {
  kConditions,  // the pod's cgroup exists, and the runtime has a network for pods
  kConfigure,   // from the pod's definition
  kStopLost,    // release what earlier sandboxes hold, above all their network; one after the other
  kRun,
  kStatus,  // read its addresses
};

namespace {

using api::Json;

constexpr Duration kSandboxMax = minutes(4);
constexpr Duration kNetworkRetry = seconds(1);
constexpr auto kWarning = agent::PodNotice::Weight::kWarning;

constexpr auto kStepsOfSandboxStart = [] {
  using enum SandboxStartStep;
  return std::array{kConditions, kConfigure, kStopLost, kRun, kStatus};
}();

}  // namespace

Json sandbox_request(const std::string& id) {
  return Json::object({{"pod_sandbox_id", id}});
}

std::vector<std::string> sandbox_addresses(const Json& status) {
  std::vector<std::string> ips;
  if (const std::string_view first = status.string_at({"network", "ip"}); !first.empty()) ips.emplace_back(first);
  const Json* more = status.at({"network", "additional_ips"});
  if (more == nullptr || more->if_array() == nullptr) return ips;
  for (const Json& each : *more->if_array()) ips.emplace_back(each.string_at({"ip"}));
  return ips;
}

/// One sandbox, from the command to the report.
class CriSandboxStart final : public CriRun<CriSandboxStart, SandboxStartStep> {
 public:
  CriSandboxStart(CriSandboxes& sandboxes, std::string uid)
      : CriRun(kStepsOfSandboxStart), sandboxes_(sandboxes), host_(sandboxes.host_), uid_(std::move(uid)) {
    if (const CriPod* pod = sandboxes.pods_.find(uid_)) pod_ = pod->identity;
  }

 private:
  Next run(SandboxStartStep step) override {
    switch (step) {
      case SandboxStartStep::kConditions:
        return check_conditions();
      case SandboxStartStep::kConfigure:
        return configure();
      case SandboxStartStep::kStopLost:
        return stop_lost();
      case SandboxStartStep::kRun:
        return run_sandbox();
      case SandboxStartStep::kStatus:
        return ask_status();
    }
    return Next::kEnd;
  }

  Next check_conditions() {
    CriPod* pod = find();
    if (pod == nullptr) return fail("the pod is unknown, or this node runs too many");
    if (pod->broken) return fail(pod->broken->text());
    if (pod->stopping || sandboxes_.pods_.is_closing()) return fail("the pod is being stopped");
    if (pod->slice_starting) {
      pod->wants_sandbox = true;  // another start follows
      return Next::kEnd;
    }
    const std::string& problem = sandboxes_.means_.status.network_problem();
    if (pod->command.host_network || problem.empty()) return Next::kStep;
    host_.events.notify(uid_, {}, kWarning, "NetworkNotReady", "network is not ready: " + problem);
    host_.loop.at(host_.loop.now().mono + kNetworkRetry,
                  sandboxes_.alive_.guard([self = shared_from_this()] { self->retry(); }));
    return Next::kWait;
  }

  void retry() {
    const CriPod* pod = find();
    if (pod == nullptr || pod->stopping) return;
    steps_.go_to(SandboxStartStep::kConditions);
    advance();
  }

  Next configure() {
    CriPod& pod = *find();
    const auto warnings = sandboxes_.configure(pod);
    if (!warnings) return fail(warnings.error().message);
    for (const agent::DnsWarning& each : *warnings)
      if (!each.about_node) host_.events.notify(uid_, {}, kWarning, each.reason, each.message);
    pod.asks_for_sandbox = true;
    lost_.assign(pod.lost_sandboxes.begin(), pod.lost_sandboxes.end());
    return Next::kStep;
  }

  Next stop_lost() {
    CriPod* pod = find();
    if (pod == nullptr) return Next::kEnd;
    if (pod->stopping) {
      pod->asks_for_sandbox = false;
      return Next::kEnd;
    }
    if (lost_.empty()) return Next::kStep;
    host_.calls.call("StopPodSandbox", sandbox_request(lost_.back()), kRuntimeCallMax,
                     then(&CriSandboxStart::on_lost_stopped));
    return Next::kWait;
  }

  Next on_lost_stopped(const Result<Json>& stopped) {
    CriPod* pod = find();
    if (pod == nullptr) return Next::kEnd;
    if (!stopped && stopped.error().code != ErrorCode::kNotFound) {
      pod->asks_for_sandbox = false;
      return fail(rpc_text(stopped.error()));
    }
    pod->lost_sandboxes.erase(lost_.back());
    lost_.pop_back();
    steps_.go_to(SandboxStartStep::kStopLost);
    return Next::kStep;
  }

  Next run_sandbox() {
    const CriPod& pod = *find();
    qos_ = pod.command.qos;
    Json request = Json::object({{"config", pod.sandbox_config}});
    if (!pod.handler.empty()) request["runtime_handler"] = pod.handler;
    host_.calls.call("RunPodSandbox", std::move(request), kSandboxMax, then(&CriSandboxStart::on_ran));
    return Next::kWait;
  }

  Next on_ran(const Result<Json>& ran) {
    CriPod* pod = find();
    if (pod == nullptr) return remove_late(ran);
    pod->asks_for_sandbox = false;
    if (!ran) return fail(rpc_text(ran.error()));
    pod->sandbox = ran->string_at({"pod_sandbox_id"});
    pod->sandbox_since = host_.loop.now().mono;
    if (!pod->stopping) return Next::kStep;
    sandboxes_.means_.pod_ends.stop_sandbox(uid_);
    return Next::kEnd;
  }

  /// Removes the sandbox of a pod that was removed meanwhile.
  Next remove_late(const Result<Json>& ran) {
    if (!ran) return remove_cgroup();
    late_ = ran->string_at({"pod_sandbox_id"});
    host_.calls.call("StopPodSandbox", sandbox_request(late_), kRuntimeCallMax,
                     then(&CriSandboxStart::on_late_stopped));
    return Next::kWait;
  }

  Next on_late_stopped(const Result<Json>& /*stopped*/) {
    host_.calls.call("RemovePodSandbox", sandbox_request(late_), kRuntimeCallMax,
                     then(&CriSandboxStart::on_late_removed));
    return Next::kWait;
  }

  Next on_late_removed(const Result<Json>& /*removed*/) { return remove_cgroup(); }

  Next remove_cgroup() {
    sandboxes_.means_.cgroups.remove(qos_, uid_);
    return Next::kEnd;
  }

  Next ask_status() {
    host_.calls.call("PodSandboxStatus", sandbox_request(find()->sandbox), kRuntimeCallMax,
                     then(&CriSandboxStart::on_status));
    return Next::kWait;
  }

  Next on_status(const Result<Json>& status) {
    if (!status) {
      const std::string problem = rpc_text(status.error());
      host_.events.notify(uid_, {}, kWarning, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: " + problem);
      return fail(problem);
    }
    const Json* found = status->find("status");
    host_.events.emit(
        agent::SandboxRan{uid_, found == nullptr ? std::vector<std::string>() : sandbox_addresses(*found), {}});
    return Next::kEnd;
  }

  Next fail(std::string why) {
    host_.events.emit(agent::SandboxRan{uid_, {}, std::move(why)});
    return Next::kEnd;
  }

  /// Null: the pod has been removed; another one may have its uid.
  CriPod* find() const { return sandboxes_.pods_.find(uid_, pod_); }

  CriSandboxes& sandboxes_;
  const CriHost& host_;
  std::string uid_;
  PodIdentity pod_;                // null: there was no such pod
  std::vector<std::string> lost_;  // not stopped yet
  api::QosClass qos_ = {};         // the pod's, when its sandbox was requested
  std::string late_;               // id of a sandbox whose pod was removed
};

void CriSandboxes::start(const agent::RunSandbox& command) {
  if (CriPod* pod = pods_.find(command.uid)) pod->handler = command.handler;
  std::make_shared<CriSandboxStart>(*this, command.uid)->advance();
}

void CriSandboxes::on_slice(const std::string& uid) {
  if (std::exchange(pods_.find(uid)->wants_sandbox, false)) std::make_shared<CriSandboxStart>(*this, uid)->advance();
}

Result<std::vector<agent::DnsWarning>> CriSandboxes::configure(CriPod& pod) const {
  const CriRuntimeOptions& options = host_.options;
  agent::DnsFacts dns = options.dns;
  if (!options.resolver_file.empty()) dns.resolv_conf = read_resolver_file(options.resolver_file);
  SPILLWAY_TRY(parent, means_.cgroups.parent_of_sandbox(pod));
  agent::SandboxWish wish{.attempt = pod.sandbox_attempt,
                          .cgroup_parent = std::move(parent),
                          .log_directory = pod.logs,
                          .dns = std::move(dns),
                          .resources = options.resources,
                          .extra_groups = {},
                          .namespaces = {},
                          .unknown_class = {}};  // RunSandbox has resolved the class already
  SPILLWAY_TRY(made, agent::sandbox_config(*pod.command.definition, wish));
  host_.owner.mark(made.config);
  pod.sandbox_config = std::move(made.config);
  return std::move(made.warnings);
}

/// Ephemeral containers are added after the sandbox was made, and may need more than it has: the runtime validates each
/// container against the present pod.
Outcome CriSandboxes::follow(CriPod& pod, const agent::StartContainer& command) const {
  const bool has_one = !pod.sandbox_config.is_null();
  if (has_one && pod.command.definition == command.definition) return {};
  pod.command.definition = command.definition;
  const auto made = configure(pod);
  if (made) return {};
  if (!has_one) return made.error();  // a found container whose definition could not be read
  host_.log.warning("sandbox keeps its configuration",
                    {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  return {};
}

/// A sandbox that a list does not show as ready is inspected once more before any action.
void CriSandboxes::doubt(const Json& sandboxes, Instant listed) {
  if (!pods_.is_complete() || pods_.is_closing()) return;
  std::set<std::string, std::less<>> ready;
  for (const Json& each : list_in(sandboxes, "items"))
    if (number_in(each, {"state"}) == 0) ready.emplace(each.string_at({"id"}));
  for (auto& [uid, pod] : pods_.all()) {
    if (pod.sandbox.empty() || pod.stopping || pod.removing || pod.sandbox_since >= listed) continue;
    if (ready.contains(pod.sandbox) || std::exchange(pod.sandbox_doubted, true)) continue;
    host_.calls.call("PodSandboxStatus", sandbox_request(pod.sandbox), kRuntimeCallMax,
                     [this, uid = uid, id = pod.sandbox](const Result<Json>& status) { on_status(uid, id, status); });
  }
}

void CriSandboxes::check(const CriPod& pod, std::move_only_function<void()> then) {
  host_.calls.call("PodSandboxStatus", sandbox_request(pod.sandbox), kSandboxDoubtMax,
                   [this, uid = pod.command.uid, id = pod.sandbox, then = std::move(then)](
                       const Result<Json>& status) mutable { on_checked(uid, id, status, std::move(then)); });
}

void CriSandboxes::on_checked(const std::string& uid, const std::string& id, const Result<Json>& status,
                              std::move_only_function<void()> then) {
  on_status(uid, id, status);
  then();
}

void CriSandboxes::on_status(const std::string& uid, const std::string& id, const Result<Json>& status) {
  CriPod* pod = pods_.find(uid);
  if (pod == nullptr) return;
  pod->sandbox_doubted = false;
  if (pod->sandbox != id || pod->stopping || pod->removing) return;
  const bool gone = !status && status.error().code == ErrorCode::kNotFound;
  const Json* found = status ? status->find("status") : nullptr;
  if (!gone && (found == nullptr || number_in(*found, {"state"}) == 0)) return;  // ready, or of unknown state
  lose(*pod);
}

void CriSandboxes::lose(CriPod& pod) {
  host_.log.info("the sandbox of a pod is not ready any more", {{"pod", pod.command.pod.text()}, {"id", pod.sandbox}});
  pod.old_sandboxes.insert(pod.sandbox);
  pod.lost_sandboxes.insert(pod.sandbox);
  pod.sandbox.clear();
  ++pod.sandbox_attempt;
  host_.events.emit(agent::SandboxLost{pod.command.uid});
  means_.container_ends.inspect_all(pod.command.uid);
}

}  // namespace spillway::host
