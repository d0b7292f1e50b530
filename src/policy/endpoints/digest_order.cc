#include "policy/endpoints/digest_order.h"

#include "base/fnv128.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::endpoints {
namespace {

template <typename T>
std::string pointed_at(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "<nil>";
}

template <typename T>
std::string go_list(std::string_view type, const std::vector<T>& elements, std::string (*text)(const T&)) {
  std::string out = fmt::format("([]{})", type);
  if (elements.empty()) return out + "<nil>";
  char before = '[';
  for (const T& element : elements) {
    out += before;
    out += text(element);
    before = ' ';
  }
  return out + ']';
}

std::string go_text(const api::SlicePort& port) {
  return fmt::format(
      "(v1.EndpointPort){{Name:(*string){} Protocol:(*v1.Protocol){} Port:(*int32){} AppProtocol:(*string){}}}",
      pointed_at(port.name), pointed_at(port.protocol), pointed_at(port.port), pointed_at(port.app_protocol));
}

/// The port as an element of a list, without its type.
std::string bare_port(const api::EndpointPort& port) {
  return fmt::format("{{Name:(string){} Port:(int32){} Protocol:(v1.Protocol){} AppProtocol:(*string){}}}", port.name,
                     port.port, port.protocol, pointed_at(port.app_protocol));
}

std::string go_text(const api::EndpointPort& port) {
  return "(v1.EndpointPort)" + bare_port(port);
}

std::string target_text(const std::optional<api::ObjectReference>& target) {
  if (!target) return "<nil>";
  return fmt::format(
      "{{Kind:(string){} Namespace:(string){} Name:(string){} UID:(types.UID){} APIVersion:(string){} "
      "ResourceVersion:(string){} FieldPath:(string){}}}",
      target->kind, target->ns, target->name, target->uid, target->api_version, target->resource_version,
      target->field_path);
}

std::string bare_address(const api::EndpointAddress& address) {
  return fmt::format("{{IP:(string){} Hostname:(string){} NodeName:(*string){} TargetRef:(*v1.ObjectReference){}}}",
                     address.ip, address.hostname, pointed_at(address.node_name), target_text(address.target));
}

std::string go_text(const api::EndpointSubset& subset) {
  return fmt::format("(v1.EndpointSubset){{Addresses:{} NotReadyAddresses:{} Ports:{}}}",
                     go_list("v1.EndpointAddress", subset.addresses, bare_address),
                     go_list("v1.EndpointAddress", subset.not_ready, bare_address),
                     go_list("v1.EndpointPort", subset.ports, bare_port));
}

template <typename T>
void sort_all(std::vector<T>& values) {
  if (values.size() < 2) return;
  std::vector<std::pair<Fnv128, T>> keyed;
  keyed.reserve(values.size());
  for (T& value : values) {
    const Fnv128 digest = fnv1a128(go_text(value));
    keyed.emplace_back(digest, std::move(value));
  }
  std::ranges::stable_sort(keyed, {}, [](const auto& each) { return each.first; });
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::move(keyed[i].second);
}

}  // namespace

void sort_by_digest(std::vector<api::SlicePort>& ports) {
  sort_all(ports);
}

void sort_by_digest(std::vector<api::EndpointPort>& ports) {
  sort_all(ports);
}

void sort_by_digest(std::vector<api::EndpointSubset>& subsets) {
  sort_all(subsets);
}

}  // namespace spillway::endpoints
