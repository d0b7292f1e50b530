// Rules for pods on Windows nodes: users and the host.
#include "api/text/names.h"
#include "apiserver/kinds/pod/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::size_t kCredentialSpecMax = 64U * 1024U;
constexpr std::size_t kDomainMax = 255;
constexpr std::size_t kUserMax = 104;
constexpr std::size_t kNetBiosMax = 15;
constexpr std::size_t kDomainLabelMax = 63;

bool has_any(std::string_view text, std::string_view characters) {
  return text.find_first_of(characters) != std::string_view::npos;
}

bool is_net_bios_domain(std::string_view domain) {
  return !domain.empty() && domain.size() <= kNetBiosMax && domain.front() != '.' && !has_any(domain, "\\/:*?\"<>|");
}

bool is_dns_domain(std::string_view domain) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (std::string_view rest = domain;;) {
    const std::size_t point = rest.find('.');
    const std::string_view label = rest.substr(0, point);
    if (label.empty() || label.size() > kDomainLabelMax || !alphanumeric(label.front()) ||
        !alphanumeric(label.back())) {
      return false;
    }
    if (!std::ranges::all_of(label, [&](char c) { return alphanumeric(c) || c == '-'; })) return false;
    if (point == std::string_view::npos) return true;
    rest.remove_prefix(point + 1);
  }
}

void check_user_part(const CheckedField& name, std::string_view user) {
  if (user.empty()) {
    name.invalid("runAsUserName's User cannot be empty");
  } else if (user.size() > kUserMax) {
    name.invalid(fmt::format("runAsUserName's User length must not be longer than {} characters", kUserMax));
  }
  if (has_any(user, "\"/\\:;|=,+*?<>@[]")) {
    name.invalid("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  }
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos) {
    name.invalid("runAsUserName's User cannot contain only periods or spaces");
  }
}

/// "DOMAIN\user" or "user".
void check_user_name(const CheckedField& name) {
  const std::string_view text = name.text();
  const bool has_control = std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
  if (text.empty()) return name.invalid("runAsUserName cannot be an empty string");
  if (has_control) return name.invalid("runAsUserName cannot contain control characters");
  if (std::ranges::count(text, '\\') > 1) return name.invalid("runAsUserName cannot contain more than one backslash");
  const std::size_t backslash = text.find('\\');
  if (backslash == std::string_view::npos) return check_user_part(name, text);
  const std::string_view domain = text.substr(0, backslash);
  if (domain.size() > kDomainMax) name.invalid("runAsUserName's Domain length must be under 256 characters");
  if (!is_net_bios_domain(domain) && !is_dns_domain(domain)) {
    name.invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  }
  check_user_part(name, text.substr(backslash + 1));
}

/// The value; nullopt: absent.
std::optional<bool> host_process_of(const CheckedField& holder) {
  const api::Json* value = holder.json().at({"securityContext", "windowsOptions", "hostProcess"});
  return value != nullptr ? value->if_bool() : std::nullopt;
}

}  // namespace

void check_windows_options(const CheckedField& options) {
  const CheckedField spec_name = options["gmsaCredentialSpecName"];
  if (spec_name) spec_name.require_valid(api::dns1123_subdomain_errors(spec_name.text()));
  const CheckedField spec = options["gmsaCredentialSpec"];
  if (spec && spec.text().empty()) spec.invalid("gmsaCredentialSpec cannot be an empty string");
  if (spec.text().size() > kCredentialSpecMax) spec.invalid("gmsaCredentialSpec size must be under 64 KiB");
  const CheckedField user = options["runAsUserName"];
  if (user) check_user_name(user);
}

void check_host_process(const CheckedField& spec) {
  const std::optional<bool> of_pod = host_process_of(spec);
  int containers = 0;
  int on_host = 0;
  each_container(spec, [&](const CheckedField& container) {
    ++containers;
    const std::optional<bool> of_container = host_process_of(container);
    if (of_container.value_or(of_pod.value_or(false))) ++on_host;
    if (!of_pod || !of_container || *of_pod == *of_container) return;
    const CheckedField context = container["securityContext"];
    const CheckedField options = context["windowsOptions"];
    const CheckedField own = options["hostProcess"];
    own.invalid(fmt::format("pod hostProcess value must be identical if both are specified, was {}", *of_pod));
  });
  if (on_host == 0) return;
  if (on_host != containers) {
    spec.invalid("", "If pod contains any hostProcess containers then all containers must be HostProcess containers");
  }
  const CheckedField network = spec["hostNetwork"];
  if (!network.is_true()) {
    network.invalid(false, "hostNetwork must be true if pod contains any hostProcess containers");
  }
}

}  // namespace spillway::apiserver::kinds
