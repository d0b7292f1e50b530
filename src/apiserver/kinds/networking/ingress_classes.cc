// IngressClasses: which controller is responsible for the Ingresses that name the class, and with what parameters.
// Source: Kubernetes API reference, IngressClass.
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/networking/ingress_rules.h"
#include "apiserver/kinds/networking/networking_kinds.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::string_view kIngressClasses = "ingressclasses.networking.k8s.io";
constexpr std::string_view kDefaultMark = "ingressclass.kubernetes.io/is-default-class";
constexpr std::size_t kControllerMax = 250;
constexpr std::array<std::string_view, 2> kParameterScopes{"Cluster", "Namespace"};

void default_class_parameters(Json& ingress_class) {
  Json* parameters = ingress_class.at({"spec", "parameters"});
  if (parameters == nullptr || !parameters->is_object()) return;
  if (!has(*parameters, "scope")) (*parameters)["scope"] = "Cluster";
}

/// "acme.io/foo".
void check_controller(const CheckedField& controller) {
  if (!controller.require_text()) return;
  const std::string_view text = controller.text();
  if (text.size() > kControllerMax) controller.too_long(kControllerMax);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    return controller.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  const std::string_view domain = text.substr(0, slash);
  for (const std::string& problem : api::dns1123_subdomain_errors(domain)) controller.invalid(domain, problem);
  const std::string_view path = text.substr(slash + 1);
  for (const std::string& problem : http_path_errors(path)) controller.invalid(path, problem);
}

void check_parameters_place(const CheckedField& parameters) {
  const CheckedField scope = parameters["scope"];
  if (!scope) return scope.required();
  const CheckedField ns = parameters["namespace"];
  if (scope.text() == "Namespace") {
    if (!ns) return ns.required("`parameters.scope` is set to 'Namespace'");
    return ns.require_valid(api::dns1123_label_errors(ns.text()));
  }
  if (scope.text() != "Cluster") return scope.not_supported(kParameterScopes);
  if (ns) ns.forbidden("`parameters.scope` is set to 'Cluster'");
}

void validate_ingress_class(const Json& ingress_class, FieldErrors& errors) {
  const CheckedField spec(ingress_class.find("spec"), "spec", errors);
  const CheckedField controller = spec["controller"];
  check_controller(controller);
  const CheckedField parameters = spec["parameters"];
  if (!parameters) return;
  check_object_reference(parameters);
  check_parameters_place(parameters);
}

void validate_ingress_class_update(const Json& ingress_class, const Json& old, Endpoint, FieldErrors& errors) {
  const Json& controller = value_of(value_of(ingress_class, "spec"), "controller");
  if (controller != value_of(value_of(old, "spec"), "controller")) {
    errors.invalid("spec.controller", controller, kImmutable);
  }
  validate_ingress_class(ingress_class, errors);
}

// Columns of `kubectl get`.

constexpr std::array kIngressClassColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Controller", "string", "", 0, "Controller that serves Ingresses of the class"},
    TableColumn{"Parameters", "string", "", 0, "Object with further settings of the class"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

std::string parameters_text(const Json& parameters) {
  if (!parameters.is_object()) return std::string(kNone);
  const std::string group = has(parameters, "apiGroup") ? fmt::format(".{}", text(parameters, "apiGroup")) : "";
  return fmt::format("{}{}/{}", text(parameters, "kind"), group, text(parameters, "name"));
}

TableRow ingress_class_row(const Json& ingress_class, WallTime now) {
  const Json& spec = value_of(ingress_class, "spec");
  return {{ingress_class.string_at({"metadata", "name"}), text(spec, "controller"),
           parameters_text(value_of(spec, "parameters")), age_of(ingress_class, now)},
          nullptr};
}

}  // namespace

std::optional<std::string> default_ingress_class(const Cluster& cluster) {
  std::optional<std::pair<std::string, std::string>> newest;  // created, name
  cluster.visit(kIngressClasses, "", [&newest](const Json& each) {
    if (each.string_at({"metadata", "annotations", kDefaultMark}) != "true") return true;
    std::string created(each.string_at({"metadata", "creationTimestamp"}));
    std::string name(each.string_at({"metadata", "name"}));
    const bool better = !newest || created > newest->first || (created == newest->first && name < newest->second);
    if (better) newest = {std::move(created), std::move(name)};
    return true;
  });
  if (!newest) return std::nullopt;
  return std::move(newest->second);
}

void check_object_reference(const CheckedField& reference) {
  const CheckedField group = reference["apiGroup"];
  if (group) group.require_valid(api::dns1123_subdomain_errors(group.text()));
  for (const std::string_view name : {"kind", "name"}) {
    const CheckedField member = reference[name];
    if (member.require_text()) member.require_valid(api::path_segment_errors(member.text()));
  }
}

Resource ingress_class_kind() {
  static const KindHooks kHooks{.set_defaults = default_class_parameters,
                                .validate_create = validate_ingress_class,
                                .validate_update = validate_ingress_class_update,
                                .columns = kIngressClassColumns,
                                .table_row = ingress_class_row};
  return {.group = "networking.k8s.io",
          .version = "v1",
          .plural = "ingressclasses",
          .singular = "ingressclass",
          .kind = "IngressClass",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("ingressclasses"),
          .counts_generation = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
