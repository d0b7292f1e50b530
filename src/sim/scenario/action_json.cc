#include "sim/scenario/action_json.h"

#include "api/text/duration.h"

#include <fmt/format.h>

#include <variant>

namespace spillway::sim {
namespace {

using api::Json;
using Said = std::pair<std::string, Json>;

Json choice_members(const NodeChoice& choice) {
  Json out = Json::object();
  if (choice.zone) out["zone"] = *choice.zone;
  if (choice.label) out["label"] = choice.label->first + "=" + choice.label->second;
  for (const std::string& name : choice.names) {
    if (out.find("names") == nullptr) out["names"] = Json::array();
    out["names"].if_array()->emplace_back(name);
  }
  if (choice.skip > 0) out["skip"] = static_cast<std::int64_t>(choice.skip);
  if (choice.every > 1) out["every"] = static_cast<std::int64_t>(choice.every);
  for (const std::size_t number : choice.only) {
    if (out.find("only") == nullptr) out["only"] = Json::array();
    out["only"].if_array()->emplace_back(static_cast<std::int64_t>(number));
  }
  return out;
}

Json nodes_json(const NodeChoice& choice) {
  return choice == NodeChoice() ? Json("all") : choice_members(choice);
}

Json number(std::size_t value) {
  return Json(static_cast<std::int64_t>(value));
}

Json pods_json(const PodChoice& pods) {
  Json out = Json::object({{"pods", pods.pods}});
  if (pods.label) out["label"] = pods.label->first + "=" + pods.label->second;
  if (pods.first) out["first"] = number(*pods.first);
  return out;
}

/// UseMemory or FillDisk.
template <typename Use>
Json use_json(const Use& action) {
  Json out = pods_json(action.pods);
  out["to"] = bytes_text(action.to);
  if (action.over > Duration::zero()) out["over"] = api::format_duration(action.over);
  if (action.rate_per_second > Bytes{0}) out["rate"] = bytes_text(action.rate_per_second) + "/s";
  return out;
}

std::string text_of(const DeploymentChoice& deployment) {
  return deployment.ns + "/" + deployment.name;
}

struct Saying {
  Said operator()(const PartitionNodes& action) const {
    if (action.cut == Cut::kBoth) return {"partition", nodes_json(action.nodes)};
    Json out = choice_members(action.nodes);
    out["way"] = action.cut == Cut::kToServer ? "toServer" : "fromServer";
    return {"partition", std::move(out)};
  }

  Said operator()(const HealNodes& action) const { return {"heal", nodes_json(action.nodes)}; }

  Said operator()(const CrashNodes& action) const { return {"crash", nodes_json(action.nodes)}; }

  Said operator()(const RestartNodes& action) const { return {"restart", nodes_json(action.nodes)}; }

  Said operator()(const RollingReboot& action) const {
    Json out = choice_members(action.nodes);
    out["away"] = api::format_duration(action.away);
    out["interval"] = api::format_duration(action.interval);
    return {"rollingReboot", std::move(out)};
  }

  Said operator()(const CrashControllers&) const { return {"crash", "controllers"}; }

  Said operator()(const RestartControllers&) const { return {"restart", "controllers"}; }

  Said operator()(const CrashScheduler&) const { return {"crash", "scheduler"}; }

  Said operator()(const RestartScheduler&) const { return {"restart", "scheduler"}; }

  Said operator()(const StopApiServer& action) const { return {"crash", fmt::format("server-{}", action.server)}; }

  Said operator()(const StartApiServer& action) const { return {"restart", fmt::format("server-{}", action.server)}; }

  Said operator()(const SlowApiServer& action) const {
    return {"apiServer", Json::object({{"slow", api::format_duration(action.latency)}})};
  }

  Said operator()(const UseMemory& action) const { return {"memory", use_json(action)}; }

  Said operator()(const FillDisk& action) const { return {"disk", use_json(action)}; }

  Said operator()(const ReadFiles& action) const {
    Json out = use_json(action);
    if (action.again) out["again"] = true;
    return {"cache", std::move(out)};
  }

  Said operator()(const ForkProcesses& action) const {
    Json out = pods_json(action.pods);
    out["to"] = action.to;
    if (action.over > Duration::zero()) out["over"] = api::format_duration(action.over);
    if (action.rate_per_second > 0) out["rate"] = action.rate_per_second;
    return {"fork", std::move(out)};
  }

  Said operator()(const DrainNodes& action) const { return {"drain", nodes_json(action.nodes)}; }

  Said operator()(const UncordonNodes& action) const { return {"uncordon", nodes_json(action.nodes)}; }

  Said operator()(const ScaleWorkload& action) const {
    return {"scale", Json::object({{member_of_kind(action.kind), action.ns + "/" + action.name},
                                   {"replicas", action.replicas}})};
  }

  Said operator()(const RollOut& action) const {
    Json out = Json::object({{"deployment", text_of(action.deployment)}});
    if (action.memory) out["memory"] = bytes_text(*action.memory);
    if (!action.memory_request.empty()) out["memoryRequest"] = action.memory_request;
    return {"rollout", std::move(out)};
  }

  Said operator()(const PauseRollout& action) const { return {"pause", text_of(action.deployment)}; }

  Said operator()(const ResumeRollout& action) const { return {"resume", text_of(action.deployment)}; }

  Said operator()(const UndoRollout& action) const { return {"undo", text_of(action.deployment)}; }

  Said operator()(const JumpClock& action) const { return {"jumpClock", api::format_duration(action.by)}; }

  Said operator()(const MuteWatch& action) const { return {"muteWatch", action.path}; }

  Said operator()(const CreateObject& action) const {
    Json out = Json::object({{member_of_kind(action.kind), action.name}});
    if (action.ns != "default") out["in"] = action.ns;
    if (action.kind != "Pod") return {"create", std::move(out)};
    out["memory"] = bytes_text(action.memory);
    if (action.growth_per_second > Bytes{0}) out["growth"] = bytes_text(action.growth_per_second) + "/s";
    if (!action.memory_request.empty()) out["memoryRequest"] = action.memory_request;
    if (!action.priority_class.empty()) out["priorityClass"] = action.priority_class;
    if (!action.restarts) out["restarts"] = false;
    return {"create", std::move(out)};
  }

  Said operator()(const DeleteObject& action) const {
    Json out = Json::object();
    if (action.place) {
      out["anyPod"] = number(*action.place);
    } else {
      out[member_of_kind(action.kind)] = action.name;
      if (action.ns != "default") out["in"] = action.ns;
    }
    if (action.at_once) out["atOnce"] = true;
    return {"delete", std::move(out)};
  }

  Said operator()(const BreakEtcd& action) const {
    const char* const what = action.what == BreakEtcd::What::kStop   ? "stop"
                             : action.what == BreakEtcd::What::kPart ? "part"
                                                                     : "cutOff";
    return {"etcd", Json::object({{what, number(action.number)}})};
  }

  Said operator()(const RepairEtcd& action) const { return (*this)(action.broken); }  // its own event is not shown

  Said operator()(const DeposeEtcd&) const { return {"etcd", "depose"}; }

  Said operator()(const CompactEtcd&) const { return {"etcd", "compact"}; }

  Said operator()(const JumpMachineClocks& action) const {
    Json out = choice_members(action.nodes);
    out["by"] = api::format_duration(action.by);
    return {"jumpClock", std::move(out)};
  }

  Said operator()(const WorsenLinks& action) const {
    Json out = choice_members(action.nodes);
    if (action.link.latency > Duration::zero()) out["latency"] = api::format_duration(action.link.latency);
    if (action.link.lost_ppm > 0) out["lost"] = static_cast<std::int64_t>(action.link.lost_ppm);
    return {"link", std::move(out)};
  }

  Said operator()(const SlowDisks& action) const {
    Json out = choice_members(action.nodes);
    out["by"] = api::format_duration(action.by);
    return {"slowDisk", std::move(out)};
  }

  Said operator()(const HoldEndings& action) const {
    return {action.ending == SimHost::Ending::kNever ? "stuck" : "slowStop", pods_json(action.pods)};
  }

  Said operator()(const KeepImages& action) const {
    Json out = choice_members(action.nodes);
    out["to"] = bytes_text(action.to);
    if (action.undeletable) out["undeletable"] = true;
    return {"images", std::move(out)};
  }

  Said operator()(const ChangeThresholds& action) const {
    Json out = choice_members(action.nodes);
    for (const auto& [name, value] : *action.written.if_object()) out[name] = value;
    return {"thresholds", std::move(out)};
  }
};

}  // namespace

std::string member_of_kind(const std::string& kind) {
  return std::string(1, static_cast<char>(kind[0] - 'A' + 'a')) + kind.substr(1);
}

std::string bytes_text(Bytes bytes) {
  const std::int64_t mebibyte = mebibytes(1).count();
  return bytes.count() % mebibyte == 0 ? fmt::format("{}Mi", bytes.count() / mebibyte)
                                       : fmt::format("{}", bytes.count());
}

Said action_json(const Action& action) {
  return std::visit(Saying(), action);
}

}  // namespace spillway::sim
