#include "apiserver/kinds/advice/pod_advice.h"

#include "api/text/quantity.h"
#include "apiserver/kinds/advice/members.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

struct Deprecation {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kNodeLabels{
    Deprecation{"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
    Deprecation{"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
    Deprecation{"failure-domain.beta.kubernetes.io/region",
                "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
    Deprecation{"failure-domain.beta.kubernetes.io/zone",
                "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
    Deprecation{"beta.kubernetes.io/instance-type",
                "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
};

constexpr std::array kAnnotations{
    Deprecation{"scheduler.alpha.kubernetes.io/critical-pod",
                "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
    Deprecation{"security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
    Deprecation{"security.alpha.kubernetes.io/unsafe-sysctls",
                "non-functional in v1.11+; use the \"sysctls\" field instead"},
};

// Members of a volume; the path of the advice has the name of the plug-in, which differs for StorageOS.
struct DeadVolume {
  std::string_view member;
  std::string_view shown;
  std::string_view text;
};

constexpr std::array kVolumes{
    DeadVolume{"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
    DeadVolume{"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
    DeadVolume{"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
    DeadVolume{"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
    DeadVolume{"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
    DeadVolume{"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
    DeadVolume{"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
    DeadVolume{"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
    DeadVolume{"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"},
};

constexpr std::string_view kPodSeccomp = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kContainerSeccomp = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kContainerAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompText = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
constexpr std::string_view kAppArmorText = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
constexpr std::string_view kNullSelector = "a null labelSelector results in matching no pod";

// A pod may have 10,000 ports with one number; comparing each with each would hold the loop for seconds.
constexpr std::size_t kPortComparisonsMax = 100'000;

class PodAdvice {
 public:
  PodAdvice(const Json& pod, std::string_view at, AdviceList& advice)
      : prefix_(at.empty() ? "" : fmt::format("{}.", at)), advice_(advice) {
    const Json* spec = pod.find("spec");
    spec_ = is_given(spec) ? spec : &kEmpty;
    const Json* annotations = pod.at({"metadata", "annotations"});
    annotations_ = is_given(annotations) ? annotations : &kEmpty;
  }

  void advise() {
    node_labels();
    spreading();
    for (const Deprecation& each : kAnnotations) annotation(each.name, each.text);
    volumes();
    token_paths();
    repeated("hostAliases", "ip", "ip");
    repeated("imagePullSecrets", "name", "name");
    unnamed_pull_secrets();
    bytes_of(spec_->find("overhead"), spec_path("overhead"));
    if (!is_given(spec_->at({"securityContext", "seccompProfile"}))) annotation(kPodSeccomp, kSeccompText);
    each_container([this](const Json& container, const std::string& at) { advise_on_container(container, at); });
    ports();
    port_names();
    pod_affinity("podAffinity");
    pod_affinity("podAntiAffinity");
  }

 private:
  struct Port {
    const Json* port;
    std::string at;
  };

  std::string spec_path(std::string_view member) const { return fmt::format("{}spec.{}", prefix_, member); }

  void annotation(std::string_view key, std::string_view text) {
    if (annotations_->find(key) == nullptr) return;
    advice_.add(fmt::format("{}metadata.annotations[{}]: {}", prefix_, key, text));
  }

  void node_labels() {
    const Json* selector = spec_->find("nodeSelector");
    if (selector != nullptr && selector->if_object() != nullptr) {
      for (const auto& [key, value] : *selector->if_object()) {
        const std::string_view text = deprecated_node_label(key);
        if (!text.empty()) advice_.add(fmt::format("{}[{}]: {}", spec_path("nodeSelector"), key, text));
      }
    }
    const std::string node_affinity = spec_path("affinity.nodeAffinity");
    const auto& terms = list_at(
        *spec_, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    for (std::size_t i = 0; i < terms.size() && !advice_.full(); ++i) {
      advise_on_node_term(
          terms[i],
          fmt::format("{}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{}]", node_affinity, i),
          advice_);
    }
    const auto& preferred =
        list_at(*spec_, {"affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"});
    for (std::size_t i = 0; i < preferred.size() && !advice_.full(); ++i) {
      const Json* term = preferred[i].find("preference");
      if (!is_given(term)) continue;
      advise_on_node_term(
          *term, fmt::format("{}.preferredDuringSchedulingIgnoredDuringExecution[{}].preference", node_affinity, i),
          advice_);
    }
  }

  void spreading() {
    const auto& constraints = list_at(*spec_, {"topologySpreadConstraints"});
    for (std::size_t i = 0; i < constraints.size() && !advice_.full(); ++i) {
      const std::string at = fmt::format("{}[{}]", spec_path("topologySpreadConstraints"), i);
      const std::string_view key = constraints[i].string_at({"topologyKey"});
      const std::string_view text = deprecated_node_label(key);
      if (!text.empty()) advice_.add(fmt::format("{}.topologyKey: {} is {}", at, key, text));
      if (!is_given(constraints[i].find("labelSelector"))) {
        advice_.add(fmt::format("{}.labelSelector: {}", at, kNullSelector));
      }
    }
  }

  void volumes() {
    const auto& all = list_at(*spec_, {"volumes"});
    for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
      const std::string at = fmt::format("{}[{}]", spec_path("volumes"), i);
      advise_on_volume_source(all[i], at, advice_);
      advise_on_claim_spec(all[i].at({"ephemeral", "volumeClaimTemplate", "spec"}),
                           at + ".ephemeral.volumeClaimTemplate.spec", advice_);
    }
  }

  /// Files of other sources that a projected token of the service account hides.
  void token_paths() {
    std::set<std::string_view> tokens;
    const auto& all = list_at(*spec_, {"volumes"});
    for (const Json& volume : all) {
      for (const Json& source : list_at(volume, {"projected", "sources"})) {
        const Json* token = source.find("serviceAccountToken");
        if (is_given(token)) tokens.insert(token->string_at({"path"}));
      }
    }
    if (tokens.empty()) return;
    const auto hidden = [&](const std::string& at, std::string_view path) {
      if (tokens.contains(path)) {
        advice_.add(fmt::format("{}: has duplicated path with ServiceAccountToken \"{}\"", at, path));
      }
    };
    for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
      const std::string at = fmt::format("{}[{}].projected.sources", spec_path("volumes"), i);
      for (const Json& source : list_at(all[i], {"projected", "sources"})) {
        for (const auto& [member, shown] : {std::pair{"configMap", "configMap"}, std::pair{"secret", "secrets"},
                                            std::pair{"downwardAPI", "downwardAPI"}}) {
          const auto& items = list_at(source, {member, "items"});
          for (std::size_t j = 0; j < items.size(); ++j) {
            hidden(fmt::format("{}.{}[{}]", at, shown, j), items[j].string_at({"path"}));
          }
        }
        if (is_given(source.find("clusterTrustBundle"))) {
          hidden(at + ".ClusterTrustBundle", source.string_at({"clusterTrustBundle", "path"}));
        }
      }
    }
  }

  void repeated(std::string_view members, std::string_view key, std::string_view word) {
    const auto& all = list_at(*spec_, {members});
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
      const std::string_view value = all[i].string_at({key});
      if (seen.insert(value).second) continue;
      advice_.add(fmt::format("{}[{}].{}: duplicate {} \"{}\"", spec_path(members), i, key, word, value));
    }
  }

  void unnamed_pull_secrets() {
    const auto& secrets = list_at(*spec_, {"imagePullSecrets"});
    for (std::size_t i = 0; i < secrets.size() && !advice_.full(); ++i) {
      if (!secrets[i].string_at({"name"}).empty()) continue;
      advice_.add(fmt::format("{}[{}].name: invalid empty name \"\"", spec_path("imagePullSecrets"), i));
    }
  }

  void bytes_of(const Json* amounts, const std::string& at) {
    if (!is_given(amounts)) return;
    for (const std::string_view resource : {"memory", "ephemeral-storage"}) {
      advise_on_bytes(amounts->find(resource), fmt::format("{}[{}]", at, resource), advice_);
    }
  }

  template <typename Visit>
  void each_container(Visit visit) {
    for (const std::string_view member : {"initContainers", "containers", "ephemeralContainers"}) {
      const auto& all = list_at(*spec_, {member});
      for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
        visit(all[i], fmt::format("{}[{}]", spec_path(member), i));
      }
    }
  }

  void advise_on_container(const Json& container, const std::string& at) {
    const std::string_view name = container.string_at({"name"});
    if (!is_given(container.at({"securityContext", "seccompProfile"}))) {
      annotation(fmt::format("{}{}", kContainerSeccomp, name), kSeccompText);
    }
    const bool has_app_armor = is_given(spec_->at({"securityContext", "appArmorProfile"})) ||
                               is_given(container.at({"securityContext", "appArmorProfile"}));
    const bool is_template = !prefix_.empty();
    if (is_template && !has_app_armor) annotation(fmt::format("{}{}", kContainerAppArmor, name), kAppArmorText);
    for (const std::string_view resource : {"memory", "ephemeral-storage"}) {
      for (const std::string_view part : {"limits", "requests"}) {
        advise_on_bytes(container.at({"resources", part, resource}),
                        fmt::format("{}.resources.{}[{}]", at, part, resource), advice_);
      }
    }
    hidden_variables(container, at);
  }

  /// A variable that is defined twice, unless the second value is made of the first.
  void hidden_variables(const Json& container, const std::string& at) {
    const auto& variables = list_at(container, {"env"});
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < variables.size() && !advice_.full(); ++i) {
      const std::string_view name = variables[i].string_at({"name"});
      if (seen.insert(name).second) continue;
      const std::string_view value = variables[i].string_at({"value"});
      const std::string reference = fmt::format("$({})", name);
      const bool extends = value != reference && value.find(reference) != std::string_view::npos;
      if (extends && !is_given(variables[i].find("valueFrom"))) continue;
      advice_.add(fmt::format("{}.env[{}]: hides previous definition of \"{}\", which may be dropped when using apply",
                              at, i, name));
    }
  }

  void ports() {
    std::map<std::pair<std::int64_t, std::string_view>, std::vector<Port>> by_number;
    std::size_t comparisons = 0;
    each_container([&](const Json& container, const std::string& container_at) {
      const auto& all = list_at(container, {"ports"});
      for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
        Port port{&all[i], fmt::format("{}.ports[{}]", container_at, i)};
        host_address_alone(port);
        auto& others = by_number[{number_at(all[i], {"containerPort"}), all[i].string_at({"protocol"})}];
        for (const Port& other : others) {
          if (++comparisons > kPortComparisonsMax) return;
          compare(port, other);
        }
        others.push_back(std::move(port));
      }
    });
  }

  /// Ports of containers that run side by side: a Service or probe that names a port finds the first one.
  void port_names() {
    std::map<std::string_view, std::string> first;
    each_container([&](const Json& container, const std::string& container_at) {
      const bool is_init = container_at.find("initContainers[") != std::string::npos;
      const bool is_ephemeral = container_at.find("ephemeralContainers[") != std::string::npos;
      if (is_ephemeral || (is_init && container.string_at({"restartPolicy"}) != "Always")) return;
      const auto& all = list_at(container, {"ports"});
      for (std::size_t i = 0; i < all.size() && !advice_.full(); ++i) {
        const std::string_view name = all[i].string_at({"name"});
        std::string at = fmt::format("{}.ports[{}]", container_at, i);
        if (name.empty() || first.try_emplace(name, at).second) continue;
        advice_.add(fmt::format(
            "{}: duplicate port name \"{}\" with {}, services and probes that select ports by name will use {}", at,
            name, first.at(name), first.at(name)));
      }
    });
  }

  void host_address_alone(const Port& port) {
    const std::string_view address = port.port->string_at({"hostIP"});
    if (address.empty() || number_at(*port.port, {"hostPort"}) != 0) return;
    advice_.add(
        fmt::format("{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}",
                    port.at, port.port->string_at({"name"}), number_at(*port.port, {"containerPort"}),
                    port.port->string_at({"protocol"}), address));
  }

  /// Two ports with one number and protocol.
  void compare(const Port& port, const Port& other) {
    const std::int64_t host_port = number_at(*port.port, {"hostPort"});
    const std::int64_t other_host_port = number_at(*other.port, {"hostPort"});
    const std::string_view address = port.port->string_at({"hostIP"});
    const std::string_view other_address = other.port->string_at({"hostIP"});
    std::string_view relation;
    if (host_port == other_host_port && address == other_address) {
      relation = "duplicate";
    } else if (host_port == 0 || other_host_port == 0) {
      relation = "overlapping";
    } else if (host_port == other_host_port && (address.empty() || other_address.empty())) {
      relation = "dangerously ambiguous";
    } else {
      return;
    }
    advice_.add(fmt::format("{}: {} port definition with {}", port.at, relation, other.at));
  }

  void pod_affinity(std::string_view kind) {
    const std::string at = fmt::format("{}.{}", spec_path("affinity"), kind);
    const auto& required = list_at(*spec_, {"affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"});
    for (std::size_t i = 0; i < required.size() && !advice_.full(); ++i) {
      if (is_given(required[i].find("labelSelector"))) continue;
      advice_.add(
          fmt::format("{}.requiredDuringSchedulingIgnoredDuringExecution[{}].labelSelector: {}", at, i, kNullSelector));
    }
    const auto& preferred = list_at(*spec_, {"affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"});
    for (std::size_t i = 0; i < preferred.size() && !advice_.full(); ++i) {
      if (is_given(preferred[i].at({"podAffinityTerm", "labelSelector"}))) continue;
      advice_.add(
          fmt::format("{}.preferredDuringSchedulingIgnoredDuringExecution[{}].podAffinityTerm.labelSelector: {}", at, i,
                      kNullSelector));
    }
  }

  inline static const Json kEmpty = Json::object();

  const Json* spec_;
  const Json* annotations_;
  std::string prefix_;  // "spec.template." for a template
  AdviceList& advice_;
};

}  // namespace

void advise_on_pod(const Json& pod, std::string_view at, AdviceList& advice) {
  PodAdvice(pod, at, advice).advise();
}

void advise_on_claim_spec(const Json* spec, const std::string& at, AdviceList& advice) {
  if (!is_given(spec)) return;
  for (const std::string_view part : {"requests", "limits"}) {
    advise_on_bytes(spec->at({"resources", part, "storage"}), fmt::format("{}.resources.{}[storage]", at, part),
                    advice);
  }
}

void advise_on_node_term(const Json& term, const std::string& at, AdviceList& advice) {
  const auto& expressions = list_at(term, {"matchExpressions"});
  for (std::size_t i = 0; i < expressions.size() && !advice.full(); ++i) {
    const std::string_view key = expressions[i].string_at({"key"});
    const std::string_view text = deprecated_node_label(key);
    if (!text.empty()) advice.add(fmt::format("{}.matchExpressions[{}].key: {} is {}", at, i, key, text));
  }
}

void advise_on_volume_source(const Json& volume, const std::string& at, AdviceList& advice) {
  for (const DeadVolume& dead : kVolumes) {
    if (is_given(volume.find(dead.member))) advice.add(fmt::format("{}.{}: {}", at, dead.shown, dead.text));
  }
}

void advise_on_bytes(const Json* amount, const std::string& at, AdviceList& advice) {
  const std::string* text = amount == nullptr ? nullptr : amount->if_string();
  if (text == nullptr) return;
  const auto quantity = api::parse_quantity(*text);
  if (!quantity || quantity->milli_value() % 1000 == 0) return;
  advice.add(fmt::format("{}: fractional byte value \"{}\" is invalid, must be an integer", at, quantity->to_string()));
}

std::string_view deprecated_node_label(std::string_view key) {
  for (const Deprecation& label : kNodeLabels) {
    if (label.name == key) return label.text;
  }
  return {};
}

}  // namespace spillway::apiserver::kinds
