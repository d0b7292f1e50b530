#include "agent/config/gate_config.h"

#include "agent/config/config_schema.h"
#include "api/text/duration.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

/// Reads the members of one mapping. Unknown members are reported by check_config().
class Section {
 public:
  Section(const Json* mapping, std::string path) : mapping_(mapping), path_(std::move(path)) {}

  /// kInvalid: no mapping.
  Outcome check() const {
    if (mapping_ == nullptr || mapping_->is_null() || mapping_->is_object()) return {};
    return invalid(path_, "expected a mapping, got {}", api::to_text(*mapping_));
  }

  Section below(std::string_view name) const { return {find(name), at(name)}; }

  Result<bool> is_on(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || value->is_null()) return false;
    const auto on = value->if_bool();
    if (!on) return invalid(at(name), "expected true or false, got {}", api::to_text(*value));
    return *on;
  }

  Result<Duration> duration(std::string_view name) const {
    const Json* value = find(name);
    const auto parsed = value == nullptr || value->if_string() == nullptr ? std::nullopt : as_duration(*value);
    if (!parsed || *parsed < Duration{}) {
      return invalid(at(name), "expected a duration such as 2m, got {}",
                     value == nullptr ? std::string("nothing") : api::to_text(*value));
    }
    return *parsed;
  }

  Result<std::string> text(std::string_view name) const {
    const Json* value = find(name);
    if (value == nullptr || value->is_null()) return std::string();
    if (value->if_string() == nullptr) return invalid(at(name), "expected a string, got {}", api::to_text(*value));
    return std::string(*value->if_string());
  }

  std::string at(std::string_view name) const { return fmt::format("{}[{}]", path_, name); }

 private:
  static std::optional<Duration> as_duration(const Json& value) {
    const auto parsed = api::parse_duration(*value.if_string());
    return parsed ? std::optional(*parsed) : std::nullopt;
  }

  const Json* find(std::string_view name) const { return mapping_ == nullptr ? nullptr : mapping_->find(name); }

  const Json* mapping_;
  std::string path_;
};

Outcome read_authentication(const Section& section, GateSettings& settings) {
  SPILLWAY_TRY_VOID(section.check());
  const Section anonymous = section.below("anonymous");
  const Section webhook = section.below("webhook");
  const Section x509 = section.below("x509");
  SPILLWAY_TRY_VOID(anonymous.check());
  SPILLWAY_TRY_VOID(webhook.check());
  SPILLWAY_TRY_VOID(x509.check());
  SPILLWAY_TRY(anonymous_allowed, anonymous.is_on("enabled"));
  SPILLWAY_TRY(reviewed, webhook.is_on("enabled"));
  SPILLWAY_TRY(life, webhook.duration("cacheTTL"));
  SPILLWAY_TRY(authority, x509.text("clientCAFile"));
  settings.strangers = anonymous_allowed ? Strangers::kAnonymous : Strangers::kRefused;
  settings.token_reviews = reviewed ? TokenReviews::kOn : TokenReviews::kOff;
  settings.token_life = life;
  settings.client_authority_file = std::move(authority);
  return {};
}

Outcome read_authorization(const Section& section, GateSettings& settings) {
  SPILLWAY_TRY_VOID(section.check());
  const Section webhook = section.below("webhook");
  SPILLWAY_TRY_VOID(webhook.check());
  SPILLWAY_TRY(mode, section.text("mode"));
  SPILLWAY_TRY(allowed, webhook.duration("cacheAuthorizedTTL"));
  SPILLWAY_TRY(denied, webhook.duration("cacheUnauthorizedTTL"));
  if (mode != "Webhook" && mode != "AlwaysAllow") {
    return invalid(section.at("mode"), "unknown authorization mode \"{}\"; expected Webhook or AlwaysAllow", mode);
  }
  settings.rights = mode == "AlwaysAllow" ? Rights::kGranted : Rights::kAsked;
  settings.allowed_life = allowed;
  settings.denied_life = denied;
  return {};
}

}  // namespace

Result<GateSettings> gate_of(const Json& effective) {
  GateSettings settings;
  SPILLWAY_TRY_VOID(read_authentication({effective.find("authentication"), "authentication"}, settings));
  SPILLWAY_TRY_VOID(read_authorization({effective.find("authorization"), "authorization"}, settings));
  if (is_gate_on(effective, kFineGrainedGate)) settings.fine_grained = FineGrained::kOn;
  return settings;
}

bool serves_log_files(const Json& effective) {
  const Json* found = effective.find("enableSystemLogHandler");
  return found == nullptr || found->if_bool().value_or(true);
}

Result<bool> answers_log_queries(const Json& effective) {
  const Json* found = effective.find("enableSystemLogQuery");
  if (found == nullptr || !found->if_bool().value_or(false)) return false;
  if (!serves_log_files(effective))
    return invalid("enableSystemLogQuery", "enableSystemLogHandler is required for enableSystemLogQuery");
  return true;
}

}  // namespace spillway::agent
