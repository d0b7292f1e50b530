#include "apiserver/kinds/core/endpoint_rules.h"

#include "api/text/names.h"
#include "apiserver/kinds/fields/field_values.h"
#include "apiserver/kinds/fields/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 3> kEndpointProtocols{"SCTP", "TCP", "UDP"};

}  // namespace

void check_endpoint_names(const CheckedField& endpoint) {
  const CheckedField hostname = endpoint["hostname"];
  const CheckedField node = endpoint["nodeName"];
  if (hostname && !hostname.text().empty()) hostname.require_valid(api::dns1123_label_errors(hostname.text()));
  if (node) node.require_valid(api::dns1123_subdomain_errors(node.text()));
}

void check_not_special(const CheckedField& address) {
  const auto ip = api::parse_ip(address.text());
  if (!ip) return address.invalid("must be a valid IP address");
  const std::string_view problem = special_address_problem(*ip);
  if (!problem.empty()) address.invalid(problem);
}

void check_endpoint_protocol(const CheckedField& port) {
  const CheckedField protocol = port["protocol"];
  const CheckedField spoken = port["appProtocol"];
  if (protocol.require_text()) protocol.require_one_of(kEndpointProtocols);
  if (spoken) spoken.require_valid(api::qualified_name_errors(spoken.text()));
}

void default_protocols(api::Json::Array& ports) {
  for (api::Json& port : ports) {
    if (port.is_object()) set_default(port, "protocol", "TCP");
  }
}

std::string first_few(const std::vector<std::string>& shown, std::size_t count) {
  const std::string text = fmt::format("{}", fmt::join(shown, ","));
  if (count <= shown.size()) return text;
  return fmt::format("{} + {} more...", text, count - shown.size());
}

}  // namespace spillway::apiserver::kinds
