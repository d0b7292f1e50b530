// Ingresses: which requests from outside go to which Service. The server keeps them and gives them their class;
// controllers of that class act on them. Source: Kubernetes API reference, Ingress; Kubernetes docs, "Ingress",
// "Admission Controllers" (DefaultIngressClass).
#include "api/text/ip_address.h"
#include "api/text/names.h"
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/networking/ingress_rules.h"
#include "apiserver/kinds/networking/networking_kinds.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

using api::FieldErrors;
using api::Json;

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";
constexpr std::string_view kNoAddressAsHost = "must be a DNS name, not an IP address";
constexpr std::array<std::string_view, 3> kPathTypes{"Exact", "ImplementationSpecific", "Prefix"};
constexpr std::array<std::string_view, 5> kUnclearParts{"//", "/./", "/../", "%2f", "%2F"};
constexpr std::array<std::string_view, 2> kUnclearEnds{"/..", "/."};

// Admission.

const Json* class_annotation(const Json& ingress) {
  return ingress.at({"metadata", "annotations", kClassAnnotation});
}

/// An Ingress without a class gets the default one.
api::StatusResult<void> admit_ingress(Json& ingress, const AdmissionContext& context) {
  Json& spec = ingress.make({"spec"});
  if (!spec.is_object() || has(spec, "ingressClassName") || class_annotation(ingress) != nullptr) return {};
  if (auto name = default_ingress_class(context.cluster)) spec["ingressClassName"] = *std::move(name);
  return {};
}

// Validation.

void check_host(const CheckedField& host) {
  const std::string_view name = host.text();
  host.require_valid(name.find('*') != std::string_view::npos ? wildcard_host_errors(name)
                                                              : api::dns1123_subdomain_errors(name));
}

void check_service_port(const CheckedField& backend, const CheckedField& port) {
  const CheckedField name = port["name"];
  const CheckedField number = port["number"];
  const bool has_number = number.integer().value_or(0) != 0;
  if (!name.text().empty() && has_number) return backend.invalid("", "cannot set both port name & port number");
  if (!name.text().empty()) return name.require_valid(port_name_errors(name.text()));
  if (has_number) return number.require_valid(port_number_errors(*number.integer()));
  backend.required("port name or number is required");
}

void check_backend(const CheckedField& backend) {
  const CheckedField service = backend["service"];
  const CheckedField resource = backend["resource"];
  if (service && resource) return backend.invalid("", "cannot set both resource and service backends");
  if (resource) return check_object_reference(resource);
  if (!service) return backend.invalid("", "resource or service backend is required");
  const CheckedField name = service["name"];
  if (name.require_text()) name.require_valid(api::dns1123_label_errors(name.text()));
  const CheckedField port = service["port"];
  check_service_port(backend, port);
}

/// Validates a path of type Exact or Prefix.
void check_plain_path(const CheckedField& path) {
  const std::string_view text = path.text();
  if (!text.starts_with('/')) path.invalid(text, "must be an absolute path");
  for (const std::string_view part : kUnclearParts) {
    if (text.find(part) != std::string_view::npos) path.invalid(fmt::format("must not contain '{}'", part));
  }
  for (const std::string_view end : kUnclearEnds) {
    if (text.ends_with(end)) path.invalid(fmt::format("cannot end with '{}'", end));
  }
}

void check_path(const CheckedField& rule) {
  const CheckedField type = rule["pathType"];
  if (!type) return type.required("pathType must be specified");
  const CheckedField path = rule["path"];
  if (type.text() == "Exact" || type.text() == "Prefix") {
    check_plain_path(path);
  } else if (type.text() == "ImplementationSpecific") {
    if (!path.text().empty() && !path.text().starts_with('/')) path.invalid("must be an absolute path");
  } else {
    type.not_supported(kPathTypes);
  }
  const CheckedField backend = rule["backend"];
  check_backend(backend);
}

void check_ingress_rule(const CheckedField& rule) {
  const CheckedField host = rule["host"];
  if (!host.text().empty()) {
    if (api::parse_ip(host.text())) host.invalid(kNoAddressAsHost);
    check_host(host);
  }
  const CheckedField http = rule["http"];
  if (!http) return;
  const CheckedField paths = http["paths"];
  if (paths.empty()) paths.required();
  paths.each(check_path);
}

void check_certificate(const CheckedField& tls) {
  const CheckedField hosts = tls["hosts"];
  hosts.each(check_host);
  const CheckedField secret = tls["secretName"];
  if (!secret.text().empty()) secret.require_valid(api::dns1123_subdomain_errors(secret.text()));
}

void check_ingress_spec(const CheckedField& spec) {
  const CheckedField rules = spec["rules"];
  const CheckedField backend = spec["defaultBackend"];
  if (rules.empty() && !backend) {
    spec.invalid(rules.json(), "either `defaultBackend` or `rules` must be specified");
  }
  if (backend) check_backend(backend);
  rules.each(check_ingress_rule);
  const CheckedField certificates = spec["tls"];
  certificates.each(check_certificate);
  const CheckedField class_name = spec["ingressClassName"];
  if (class_name) class_name.require_valid(api::dns1123_subdomain_errors(class_name.text()));
}

void validate_ingress_spec(const Json& ingress, FieldErrors& errors) {
  const CheckedField spec(ingress.find("spec"), "spec", errors);
  check_ingress_spec(spec);
}

void validate_ingress(const Json& ingress, FieldErrors& errors) {
  validate_ingress_spec(ingress, errors);
  const Json* annotation = class_annotation(ingress);
  const Json& name = value_of(value_of(ingress, "spec"), "ingressClassName");
  if (annotation != nullptr && !name.is_null() && *annotation != name) {
    errors.invalid(fmt::format("annotations.{}", kClassAnnotation), *annotation,
                   "must match `ingressClassName` when both are specified");
  }
}

/// `before`: the points that an update replaces, whose addresses may stay in the form in which they were written.
void check_entry_point(const CheckedField& point, const Json::Array& before) {
  const CheckedField ip = point["ip"];
  const bool stays = std::ranges::any_of(before, [&ip](const Json& old) { return text(old, "ip") == ip.text(); });
  if (!ip.text().empty()) ip.require_valid(stays ? kept_ip_errors(ip.text()) : ip_errors(ip.text()));
  const CheckedField name = point["hostname"];
  if (name.text().empty()) return;
  name.require_valid(api::dns1123_subdomain_errors(name.text()));
  if (api::parse_ip(name.text())) name.invalid(kNoAddressAsHost);
}

void validate_ingress_update(const Json& ingress, const Json& old, Endpoint endpoint, FieldErrors& errors) {
  if (endpoint != Endpoint::kStatus) return validate_ingress_spec(ingress, errors);
  const CheckedField status(ingress.find("status"), "status", errors);
  const CheckedField balancer = status["loadBalancer"];
  const CheckedField points = balancer["ingress"];
  const Json::Array& before = elements(value_of(value_of(old, "status"), "loadBalancer"), "ingress");
  points.each([&before](const CheckedField& point) { check_entry_point(point, before); });
}

// Columns of `kubectl get`.

constexpr std::array kIngressColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Class", "string", "", 0, "Its class, which says whose it is"},
    TableColumn{"Hosts", "string", "", 0, "Hosts whose requests it is about"},
    TableColumn{"Address", "string", "", 0, "Where its controller takes requests"},
    TableColumn{"Ports", "string", "", 0, "Ports of those: 443 if it has certificates"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

constexpr std::size_t kHostsShown = 3;

std::string hosts_text(const Json::Array& rules) {
  std::vector<std::string_view> hosts;
  bool more = false;
  for (const Json& rule : rules) {
    if (hosts.size() == kHostsShown) more = true;
    if (!more && !text(rule, "host").empty()) hosts.push_back(text(rule, "host"));
  }
  if (hosts.empty()) return "*";
  std::string shown = fmt::format("{}", fmt::join(hosts, ","));
  if (more) shown += fmt::format(" + {} more...", rules.size() - kHostsShown);
  return shown;
}

std::string entry_points_text(const Json& status) {
  std::set<std::string_view> points;
  for (const Json& point : elements(value_of(status, "loadBalancer"), "ingress")) {
    const std::string_view shown = text(point, "ip").empty() ? text(point, "hostname") : text(point, "ip");
    if (!shown.empty()) points.insert(shown);
  }
  return fmt::format("{}", fmt::join(points, ","));
}

TableRow ingress_row(const Json& ingress, WallTime now) {
  const Json& spec = value_of(ingress, "spec");
  return {{ingress.string_at({"metadata", "name"}),
           has(spec, "ingressClassName") ? std::string(text(spec, "ingressClassName")) : std::string(kNone),
           hosts_text(elements(spec, "rules")), entry_points_text(value_of(ingress, "status")),
           elements(spec, "tls").empty() ? "80" : "80, 443", age_of(ingress, now)},
          nullptr};
}

}  // namespace

Resource ingress_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"ing"};
  static const KindHooks kHooks{.admit_create = admit_ingress,
                                .validate_create = validate_ingress,
                                .validate_update = validate_ingress_update,
                                .columns = kIngressColumns,
                                .table_row = ingress_row};
  return {.group = "networking.k8s.io",
          .version = "v1",
          .plural = "ingresses",
          .singular = "ingress",
          .kind = "Ingress",
          .verbs = kAllVerbs,
          .storage = below("ingress"),
          .short_names = kShortNames,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .unattended =
              "nothing in this cluster acts on an Ingress by itself: this one is stored, and has no effect until a "
              "controller of its class runs",
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
