// Ports of containers, and of the host.
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kPortProtocols{"SCTP", "TCP", "UDP"};

void check_port_name(const CheckedField& name, std::set<std::string_view>& taken) {
  if (name.text().empty()) return;
  const std::vector<std::string> problems = port_name_errors(name.text());
  name.require_valid(problems);
  if (problems.empty() && !taken.insert(name.text()).second) name.duplicate();
}

void check_port(const CheckedField& port, std::set<std::string_view>& names) {
  check_port_name(port["name"], names);
  const CheckedField number = port["containerPort"];
  const CheckedField host_port = port["hostPort"];
  if (number.integer().value_or(0) == 0) {
    number.required();
  } else {
    number.require_valid(port_number_errors(*number.integer()));
  }
  if (host_port.integer().value_or(0) != 0) host_port.require_valid(port_number_errors(*host_port.integer()));
  const CheckedField protocol = port["protocol"];
  if (protocol.require_text()) protocol.require_one_of(kPortProtocols);
}

}  // namespace

void check_ports(const CheckedField& ports) {
  std::set<std::string_view> names;
  ports.each([&names](const CheckedField& port) { check_port(port, names); });
}

void check_host_port_clashes(std::span<const CheckedField> containers) {
  std::set<std::string> taken;
  for (const CheckedField& container : containers) {
    const CheckedField ports = container["ports"];
    ports.each([&taken](const CheckedField& port) {
      const CheckedField host_port = port["hostPort"];
      const std::int64_t number = host_port.integer().value_or(0);
      if (number == 0) return;
      const std::string place = fmt::format("{}/{}/{}", port["protocol"].text(), port["hostIP"].text(), number);
      if (!taken.insert(place).second) host_port.errors().duplicate(host_port.path(), place);
    });
  }
}

void check_host_network_ports(const CheckedField& spec, SpecUse use) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const CheckedField containers = spec[list];
    containers.each([use](const CheckedField& container) {
      const CheckedField ports = container["ports"];
      ports.each([use](const CheckedField& port) {
        const CheckedField host_port = port["hostPort"];
        const std::int64_t number = host_port.integer().value_or(0);
        // A pod made from a template gets the container's port where the template has none.
        if (use == SpecUse::kTemplate && number == 0) return;
        if (number == port["containerPort"].integer().value_or(0)) return;
        host_port.invalid(number, "must match `containerPort` when `hostNetwork` is true");
      });
    });
  }
}

}  // namespace spillway::apiserver::kinds
