#include "policy/scheduling/pending_pod.h"

#include "api/object/host_ports.h"
#include "policy/declared_features.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::scheduling {

namespace {

using Names = std::set<std::string>;

/// The names a term allows; nullopt: it does not speak of names.
std::optional<Names> names_in_term(const api::Json& term) {
  std::optional<Names> names;
  const api::Json* fields = term.find("matchFields");
  if (fields == nullptr || fields->if_array() == nullptr) return names;
  for (const api::Json& field : *fields->if_array()) {
    if (field.string_at({"key"}) != "metadata.name" || field.string_at({"operator"}) != "In") continue;
    Names values;
    if (const api::Json* list = field.find("values"); list != nullptr && list->if_array() != nullptr) {
      for (const api::Json& value : *list->if_array()) {
        if (value.if_string() != nullptr) values.insert(*value.if_string());
      }
    }
    if (!names) {
      names = std::move(values);
      continue;
    }
    Names both;
    std::ranges::set_intersection(*names, values, std::inserter(both, both.end()));
    names = std::move(both);
  }
  return names;
}

std::optional<Names> names_in_terms(const api::Json* terms) {
  if (terms == nullptr || terms->if_array() == nullptr || terms->if_array()->empty()) return std::nullopt;
  Names all;
  for (const api::Json& term : *terms->if_array()) {
    const std::optional<Names> names = names_in_term(term);
    if (!names) return std::nullopt;  // a term that may match any node
    all.insert(names->begin(), names->end());
  }
  return all;
}

std::string with_tag(const std::string& image) {
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  return tagged ? image : image + ":latest";
}

}  // namespace

PendingPod make_pending(const api::Pod& pod, const Profile& profile) {
  PendingPod pending;
  pending.pod = &pod;
  pending.profile = &profile;
  pending.load = policy::load_of(pod);
  pending.required = api::required_node_affinity(pod.spec);
  pending.features = policy::features_to_run(pod.spec);
  pending.asks_for_ports = !api::host_ports_of(pod.spec).empty();
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& container : *list) pending.images.push_back({with_tag(container.image), 0});
  }
  for (const api::Volume& volume : pod.spec.volumes) {
    const std::string_view image = volume.definition.string_at({"reference"});
    if (volume.source == "image" && !image.empty()) pending.images.push_back({with_tag(std::string(image)), 0, true});
  }
  const api::Json* required = pod.spec.affinity.at({"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  const bool has_required = required != nullptr && required->is_object();
  pending.asks_for_nodes = has_required || !pod.spec.node_selector.empty();
  if (has_required && !profile.left_out.contains(Filter::kNodeAffinity)) {
    pending.only_nodes = names_in_terms(required->find("nodeSelectorTerms"));
  }
  const api::Json* preferred =
      pod.spec.affinity.at({"nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"});
  const std::vector<api::PreferredNodeTerm>& added = profile.added_affinity.preferred;
  pending.wishes_for_nodes = !added.empty();
  if (preferred != nullptr) {
    pending.wishes_for_nodes =
        pending.wishes_for_nodes || (preferred->if_array() != nullptr && !preferred->if_array()->empty());
    if (auto parsed = api::parse_preferred_node_terms(*preferred)) pending.preferred = *std::move(parsed);
  }
  pending.preferred.insert(pending.preferred.end(), added.begin(), added.end());
  return pending;
}

bool asks_alike(const PendingPod& one, const PendingPod& other) {
  if (one.profile != other.profile) return false;
  const api::PodSpec& a = one.pod->spec;
  const api::PodSpec& b = other.pod->spec;
  const bool same_place = a.node_name == b.node_name && a.node_selector == b.node_selector &&
                          a.affinity == b.affinity && a.tolerations == b.tolerations;
  if (!same_place || one.load != other.load || one.asks_for_ports != other.asks_for_ports) return false;
  if (one.features != other.features) return false;
  if (one.asks_for_ports && api::host_ports_of(a) != api::host_ports_of(b)) return false;
  return std::ranges::equal(one.images, other.images, {}, &PendingImage::name, &PendingImage::name) &&
         api::qos_of(*one.pod) == api::qos_of(*other.pod);
}

}  // namespace spillway::scheduling
