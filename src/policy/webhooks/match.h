// Matches requests with webhooks. Thread: any (pure).
// Source: Kubernetes docs, "Dynamic Admission Control", matching requests.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "policy/webhooks/webhook.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::webhooks {

enum class Operation : std::uint8_t { kCreate, kUpdate, kDelete, kConnect };

/// "CREATE", …
std::string_view to_string(Operation operation);

struct ResourceName {
  std::string_view group;
  std::string_view version;
  std::string_view resource;

  friend bool operator==(const ResourceName&, const ResourceName&) = default;
};

/// A request's resource, in the form that rules match.
struct Subject {
  Operation operation = Operation::kCreate;
  std::string_view subresource;  // empty: none
  /// Empty for cluster-scoped objects; for a Namespace its own name.
  std::string_view ns;
  /// The object's name; empty: not known yet.
  std::string_view name = {};
  /// The resource that was named, then the others that the same objects are served as. Not empty.
  std::span<const ResourceName> names;

  bool is_namespace() const { return names.front() == ResourceName{"", "v1", "namespaces"}; }
};

/// True if the rule matches the request under this name.
bool fits(const Rule& rule, const Subject& subject, const ResourceName& name);

/// The name under which one of the rules matches the request; null: none does. `equivalent`: any name counts, not only
/// the requested one.
const ResourceName* matched_name(std::span<const Rule> rules, bool equivalent, const Subject& subject);
const ResourceName* matched_name(const Webhook& webhook, const Subject& subject);

/// Configurations of webhooks and admission policies are exempt from both: one that rejects everything could not be
/// deleted otherwise.
bool is_exempt(const ResourceName& name);

/// The objects and labels for selectors. `object`, `old`: null if there is none.
struct Selectable {
  const api::Json* object = nullptr;
  const api::Json* old = nullptr;
  /// Labels of the request's namespace; for a written Namespace its own. Null: the object is in no namespace.
  const api::StringMap* namespace_labels = nullptr;
};

/// The namespace fits, and the object as it is or as it was.
bool selects(const api::LabelSelector& namespaces, const api::LabelSelector& objects, const Selectable& seen);
bool selects(const Webhook& webhook, const Selectable& seen);

}  // namespace spillway::webhooks
