// Rules shared by Ingresses and their classes. Pure.
// Source: Kubernetes API reference, Ingress, IngressClass; Kubernetes docs, "Admission Controllers"
// (DefaultIngressClass).
#pragma once

#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/resource/kind_hooks.h"

#include <optional>
#include <string>

namespace spillway::apiserver::kinds {

/// The name of the newest class that is marked as the default, the first by name among equally old ones; nullopt: none
/// does.
std::optional<std::string> default_ingress_class(const Cluster& cluster);

/// An object by group, kind and name.
void check_object_reference(const CheckedField& reference);

}  // namespace spillway::apiserver::kinds
