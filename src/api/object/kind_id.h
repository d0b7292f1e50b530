// The identity of a kind: its API group and its name. Custom kinds may have the name of any other kind in a group of
// their own, so that a name alone identifies nothing: a KindId does not compare with a text.
// Thread: any (plain values). A KindId refers to the texts that it was made of.
// Source: Kubernetes API reference, "OwnerReference", "ObjectReference"; apimachinery, schema.GroupKind.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::api {

/// The group in an apiVersion: "apps" of "apps/v1"; empty for the core group, and for an apiVersion that is missing.
constexpr std::string_view group_of(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

struct KindId {
  std::string_view group;
  std::string_view kind;

  friend constexpr auto operator<=>(const KindId&, const KindId&) = default;
};

/// The kind that a reference names. Its version does not matter: all versions of a kind show the same objects.
constexpr KindId kind_id(std::string_view api_version, std::string_view kind) {
  return {group_of(api_version), kind};
}

/// The kind of an owner reference, object reference or scale target.
template <typename Reference>
  requires requires(const Reference& reference) {
    reference.api_version;
    reference.kind;
  }
constexpr KindId kind_of(const Reference& reference) {
  return kind_id(reference.api_version, reference.kind);
}

/// True for groups that Kubernetes has or reserves for itself: "", "apps", "networking.k8s.io". Groups of other custom
/// kinds have a dot and another end.
constexpr bool is_group_of_kubernetes(std::string_view group) {
  return !group.contains('.') || group.ends_with(".k8s.io");
}

/// "ReplicaSet"; "ReplicaSet.example.com" for a kind of another group than Kubernetes' own.
inline std::string text_of(const KindId& id) {
  std::string text(id.kind);
  if (!is_group_of_kubernetes(id.group)) text.append(1, '.').append(id.group);
  return text;
}

/// The kind of the objects that T holds.
template <typename T>
constexpr KindId kind_of() {
  return kind_id(T::kApiVersion, T::kKind);
}

}  // namespace spillway::api
