// Validation of volumes that are mounted over the network.
#include "api/text/names.h"
#include "apiserver/kinds/pod/rules.h"
#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::int64_t kLunMax = 255;
constexpr std::size_t kTenantMax = 64;

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool are_digits(std::string_view text, std::size_t count) {
  return text.size() == count && std::ranges::all_of(text, is_digit);
}

/// "iqn.2001-04.com.example:storage": year, month, domain, name.
bool is_iqn(std::string_view name) {
  if (!name.starts_with("iqn.") || name.size() < 12) return false;
  if (!are_digits(name.substr(4, 4), 4) || name[8] != '-' || !are_digits(name.substr(9, 2), 2) || name[11] != '.') {
    return false;
  }
  const std::string_view rest = name.substr(12);
  const std::size_t colon = rest.find(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == rest.size()) return false;
  const auto in_domain = [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; };
  const auto in_name = [](char c) {
    return std::string_view(",;*&$|").find(c) == std::string_view::npos &&
           std::isspace(static_cast<unsigned char>(c)) == 0;
  };
  return std::ranges::all_of(rest.substr(0, colon), in_domain) && std::ranges::all_of(rest.substr(colon + 1), in_name);
}

/// "eui." and 16, "naa." and 32 letters or digits.
bool is_numbered_name(std::string_view name, std::string_view kind, std::size_t count) {
  return name.starts_with(kind) && name.size() == kind.size() + 1 + count &&
         std::ranges::all_of(name.substr(kind.size() + 1), is_alphanumeric);
}

void check_initiator(const CheckedField& field) {
  const std::string_view name = field.text();
  if (!name.starts_with("iqn") && !name.starts_with("eui") && !name.starts_with("naa")) {
    field.invalid("must be valid format starting with iqn, eui, or naa");
  } else if (!is_iqn(name) && !is_numbered_name(name, "eui", 16) && !is_numbered_name(name, "naa", 32)) {
    field.invalid("must be valid format");
  }
}

bool is_host_and_port(std::string_view pair) {
  const std::size_t colon = pair.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = pair.substr(0, colon);
  if (host.starts_with('[')) return host.ends_with(']');
  return host.find_first_of(":[]") == std::string_view::npos;
}

}  // namespace

void check_nfs(const CheckedField& source) {
  const CheckedField path = source["path"];
  if (!path.text().starts_with('/')) path.invalid("must be an absolute path");
}

void check_iscsi(const CheckedField& source) {
  const CheckedField name = source["iqn"];
  if (!name.text().empty()) check_initiator(name);
  const CheckedField lun = source["lun"];
  lun.require_between(0, kLunMax);
  const CheckedField secret = source["secretRef"];
  const bool authenticates = source["chapAuthDiscovery"].is_true() || source["chapAuthSession"].is_true();
  if (authenticates && !secret) secret.required();
  const CheckedField initiator = source.member("initiatorName", "initiatorname");
  if (initiator) check_initiator(initiator);
}

void check_fibre_channel(const CheckedField& source) {
  const CheckedField names = source["targetWWNs"];
  const bool by_id = !source["wwids"].empty();
  if (names.empty() && !by_id) names.required("must specify either targetWWNs or wwids, but not both");
  if (names.empty()) return;
  if (by_id) names.invalid("targetWWNs and wwids can not be specified simultaneously");
  const CheckedField lun = source["lun"];
  if (!lun) {
    lun.required("lun is required if targetWWNs is specified");
  } else {
    lun.require_between(0, kLunMax);
  }
}

void check_quobyte(const CheckedField& source) {
  const CheckedField registry = source["registry"];
  const CheckedField tenant = source["tenant"];
  if (!registry.require_text("must be a host:port pair or multiple pairs separated by commas")) return;
  if (tenant.text().size() > kTenantMax) {
    tenant.required("must be less than 64 characters");
    return;
  }
  std::string_view rest = registry.text();
  for (;;) {
    const std::size_t comma = rest.find(',');
    if (!is_host_and_port(rest.substr(0, comma))) {
      registry.invalid("must be a host:port pair or multiple pairs separated by commas");
    }
    if (comma == std::string_view::npos || registry.full()) return;
    rest.remove_prefix(comma + 1);
  }
}

void check_flocker(const CheckedField& source) {
  const CheckedField name = source["datasetName"];
  const bool by_id = !source["datasetUUID"].text().empty();
  if (name.text().empty() && !by_id) source.required("one of datasetName and datasetUUID is required");
  if (!name.text().empty() && by_id) {
    source.invalid("resource", "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.text().find('/') != std::string_view::npos) name.invalid("must not contain '/'");
}

void check_flex_volume(const CheckedField& source) {
  const CheckedField options = source["options"];
  options.each_key([](std::string_view key, const CheckedField& option) {
    const std::string domain = "." + lower_case(key.substr(0, key.find('/')));
    if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
      option.invalid(key, "kubernetes.io and k8s.io namespaces are reserved");
    }
  });
}

void check_storage_os(const CheckedField& source) {
  const CheckedField name = source["volumeName"];
  if (!name.text().empty()) name.require_valid(api::dns1123_label_errors(name.text()));
  const CheckedField space = source["volumeNamespace"];
  if (!space.text().empty()) space.require_valid(api::dns1123_label_errors(space.text()));
  const CheckedField secret = source["secretRef"];
  const CheckedField secret_name = secret["name"];
  if (secret) secret_name.require_text();
}

void check_cinder(const CheckedField& source) {
  const CheckedField secret = source["secretRef"];
  const CheckedField name = secret["name"];
  if (secret) name.require_text();
}

}  // namespace spillway::apiserver::kinds
