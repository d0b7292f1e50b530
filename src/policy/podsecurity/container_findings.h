// Findings about the containers of a pod, in upstream's words for one or several containers.
// Thread: any (pure).
// Source: Kubernetes docs, "Pod Security Standards"; messages of its admission plug-in.
#pragma once

#include "api/json/json.h"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::podsecurity {

/// A pod as the checks see it: its metadata, its specification, and its containers of all kinds.
struct PodView {
  PodView(const api::Json& pod_metadata, const api::Json& pod_spec);

  const api::Json& metadata;
  const api::Json& spec;
  std::vector<const api::Json*> containers;  // init containers, containers, those for debugging: in this order

  /// spec.securityContext; null where there is none.
  const api::Json& context() const;
  /// spec.hostUsers is false.
  bool has_user_namespace() const;
  /// spec.os.name is "windows".
  bool runs_windows() const;
};

/// The security context of a container; null where there is none.
const api::Json& context_of(const api::Json& container);
/// The member; null where it is absent.
const api::Json& member(const api::Json& object, std::string_view key);
/// The elements of a list member; none where it is absent.
std::span<const api::Json> elements(const api::Json& object, std::string_view key);

/// The names of the containers for which `wrong` holds, in the order of PodView::containers.
template <typename Wrong>
std::vector<std::string> names_where(const PodView& pod, Wrong wrong) {
  std::vector<std::string> names;
  for (const api::Json* container : pod.containers) {
    if (wrong(*container)) names.emplace_back(container->string_at({"name"}));
  }
  return names;
}

using Words = std::set<std::string, std::less<>>;  // bytewise order, each once

std::string_view plural(std::size_t count, std::string_view one, std::string_view several);
/// "a", "b": with quotes.
std::string quoted(std::span<const std::string> words);
std::string quoted(const Words& words);
/// container "a"; containers "a", "b".
std::string containers_text(std::span<const std::string> names);
/// pod; container "a"; pod and containers "a", "b".
std::string setters_text(bool pod, std::span<const std::string> names);
std::string joined(std::span<const std::string> words, std::string_view separator);

}  // namespace spillway::podsecurity
