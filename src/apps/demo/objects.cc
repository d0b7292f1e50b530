#include "apps/demo/objects.h"

namespace spillway::apps {

namespace {

constexpr std::int64_t kSilenceToleratedSeconds = 2;

api::Json strings(const std::vector<std::string>& words) {
  api::Json::Array list;
  for (const std::string& word : words) list.emplace_back(word);
  return list;
}

api::Json amounts(const std::string& memory) {
  return api::Json::object({{"cpu", "10m"}, {"memory", memory}});
}

api::Json container(const std::vector<std::string>& command, const std::string& memory, bool guaranteed) {
  api::Json resources = api::Json::object();
  if (!memory.empty()) resources["requests"] = amounts(memory);
  if (guaranteed) resources["limits"] = amounts(memory);
  return api::Json::object(
      {{"name", "main"}, {"image", "none"}, {"command", strings(command)}, {"resources", std::move(resources)}});
}

api::Json template_document(const std::string& app, api::Json spec) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"labels", api::Json::object({{"app", app}})}})}, {"spec", std::move(spec)}});
}

api::Json workload(std::string_view kind, const std::string& name, api::Json spec) {
  spec["selector"] = api::Json::object({{"matchLabels", api::Json::object({{"app", name}})}});
  return api::Json::object({{"apiVersion", "apps/v1"},
                            {"kind", kind},
                            {"metadata", api::Json::object({{"name", name}})},
                            {"spec", std::move(spec)}});
}

const std::vector<std::string> kIdle{"tail", "-f", "/dev/null"};

}  // namespace

api::Json pod_document(const DemoPod& pod) {
  api::Json spec =
      api::Json::object({{"restartPolicy", "Never"},
                         {"terminationGracePeriodSeconds", 1},
                         {"containers", api::Json::array({container(pod.command, pod.memory, pod.guaranteed)})}});
  if (!pod.node.empty()) spec["nodeSelector"] = api::Json::object({{"kubernetes.io/hostname", pod.node}});
  return api::Json::object({{"apiVersion", "v1"},
                            {"kind", "Pod"},
                            {"metadata", api::Json::object({{"name", pod.name}})},
                            {"spec", std::move(spec)}});
}

api::Json replica_set_document(const std::string& name, int replicas) {
  api::Json tolerations = api::Json::array();
  for (const std::string_view key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    tolerations.if_array()->push_back(api::Json::object({{"key", key},
                                                         {"operator", "Exists"},
                                                         {"effect", "NoExecute"},
                                                         {"tolerationSeconds", kSilenceToleratedSeconds}}));
  }
  api::Json spec = api::Json::object({{"terminationGracePeriodSeconds", 1},
                                      {"tolerations", std::move(tolerations)},
                                      {"containers", api::Json::array({container(kIdle, "8Mi", false)})}});
  return workload("ReplicaSet", name,
                  api::Json::object({{"replicas", replicas}, {"template", template_document(name, std::move(spec))}}));
}

api::Json daemon_set_document(const std::string& name) {
  api::Json spec = api::Json::object(
      {{"terminationGracePeriodSeconds", 1}, {"containers", api::Json::array({container(kIdle, "4Mi", false)})}});
  return workload("DaemonSet", name, api::Json::object({{"template", template_document(name, std::move(spec))}}));
}

std::string_view name_of(const api::Json& object) {
  return object.string_at({"metadata", "name"});
}

std::string_view phase_of(const api::Json& pod) {
  return pod.string_at({"status", "phase"});
}

std::string_view node_of(const api::Json& pod) {
  return pod.string_at({"spec", "nodeName"});
}

bool is_leaving(const api::Json& pod) {
  return pod.at({"metadata", "deletionTimestamp"}) != nullptr;
}

bool has_label(const api::Json& object, std::string_view key, std::string_view value) {
  return object.string_at({"metadata", "labels", key}) == value;
}

std::string_view condition_of(const api::Json& object, std::string_view type) {
  const api::Json* conditions = object.at({"status", "conditions"});
  if (conditions == nullptr || conditions->if_array() == nullptr) return {};
  for (const api::Json& condition : *conditions->if_array()) {
    if (condition.string_at({"type"}) == type) return condition.string_at({"status"});
  }
  return {};
}

bool has_taint(const api::Json& node, std::string_view key, std::string_view effect) {
  const api::Json* taints = node.at({"spec", "taints"});
  if (taints == nullptr || taints->if_array() == nullptr) return false;
  for (const api::Json& taint : *taints->if_array()) {
    if (taint.string_at({"key"}) == key && taint.string_at({"effect"}) == effect) return true;
  }
  return false;
}

std::int64_t restarts_of(const api::Json& pod) {
  std::int64_t count = 0;
  const api::Json* containers = pod.at({"status", "containerStatuses"});
  if (containers == nullptr || containers->if_array() == nullptr) return 0;
  for (const api::Json& container : *containers->if_array()) {
    const api::Json* restarts = container.find("restartCount");
    count += restarts != nullptr ? restarts->if_int64().value_or(0) : 0;
  }
  return count;
}

}  // namespace spillway::apps
