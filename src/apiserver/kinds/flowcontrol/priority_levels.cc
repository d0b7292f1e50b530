// PriorityLevelConfigurations: shares of the server's seats, and the fate of requests that find no seat.
// Source: Kubernetes API reference, PriorityLevelConfiguration.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/flowcontrol/flowcontrol_kinds.h"
#include "apiserver/kinds/row_parts.h"
#include "policy/flow/built_in.h"
#include "policy/flow/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::string_view kExemptType = "Exempt";
constexpr std::string_view kLimitedType = "Limited";
constexpr std::array<std::string_view, 2> kLevelTypes{kExemptType, kLimitedType};
constexpr std::array<std::string_view, 2> kResponses{"Queue", "Reject"};
constexpr std::int64_t kSharesDefault = 30;
constexpr std::int64_t kQueuesDefault = 64;
constexpr std::int64_t kHandSizeDefault = 8;
constexpr std::int64_t kQueueLengthDefault = 50;
constexpr std::int64_t kQueuesMax = 10'000'000;
constexpr std::int64_t kWholePercent = 100;
constexpr int kHashBits = 60;  // bits of the hash that deals queues

constexpr std::array kLevelColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"Type", "string", "", 0, "Limited, or Exempt from limits"},
    TableColumn{"NominalConcurrencyShares", "string", "", 0, "Its share of the seats, relative to the other levels'"},
    TableColumn{"Queues", "string", "", 0, "Number of queues"},
    TableColumn{"HandSize", "string", "", 0, "Queues among which a flow's requests choose"},
    TableColumn{"QueueLengthLimit", "string", "", 0, "Requests that wait in one queue at most"},
    TableColumn{"Age", "string", "", 0, "Time since creation"}};

void default_number(api::Json& object, std::string_view key, std::int64_t value) {
  if (!has(object, key)) object[key] = value;
}

/// Sets a default of a positive number; replaces zero, too.
void default_positive(api::Json& object, std::string_view key, std::int64_t value) {
  if (integer(object, key).value_or(0) == 0) object[key] = value;
}

void default_priority_level(api::Json& object) {
  api::Json* const spec = object.find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  if (api::Json* const exempt = spec->find("exempt"); exempt != nullptr && exempt->is_object()) {
    default_number(*exempt, "nominalConcurrencyShares", 0);
    default_number(*exempt, "lendablePercent", 0);
  }
  api::Json* const limited = spec->find("limited");
  if (limited == nullptr || !limited->is_object()) return;
  default_number(*limited, "nominalConcurrencyShares", kSharesDefault);
  default_number(*limited, "lendablePercent", 0);
  api::Json* const response = limited->find("limitResponse");
  api::Json* const queuing = response == nullptr || !response->is_object() ? nullptr : response->find("queuing");
  if (queuing == nullptr || !queuing->is_object()) return;
  default_positive(*queuing, "queues", kQueuesDefault);
  default_positive(*queuing, "handSize", kHandSizeDefault);
  default_positive(*queuing, "queueLengthLimit", kQueueLengthDefault);
}

void validate_shares(const CheckedField& around) {
  const CheckedField shares = around["nominalConcurrencyShares"];
  if (shares.integer().value_or(0) < 0) shares.invalid("must be a non-negative integer");
  const CheckedField lendable = around["lendablePercent"];
  const std::int64_t percent = lendable.integer().value_or(0);
  if (percent < 0 || percent > kWholePercent) lendable.invalid("must be between 0 and 100, inclusive");
}

void validate_hand(const CheckedField& hand, std::int64_t queues) {
  const std::int64_t size = hand.integer().value_or(0);
  if (size <= 0) return hand.invalid("must be positive");
  if (size > queues) return hand.invalid(fmt::format("should not be greater than queues ({})", queues));
  const auto bits =
      static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(queues)) * static_cast<double>(size)));
  if (bits > kHashBits) {
    hand.invalid(fmt::format("required entropy bits of deckSize {} and handSize {} should not be greater than {}",
                             queues, size, kHashBits));
  }
}

void validate_queuing(const CheckedField& queuing) {
  const CheckedField length = queuing["queueLengthLimit"];
  if (length.integer().value_or(0) <= 0) length.invalid("must be positive");
  const CheckedField queues = queuing["queues"];
  const std::int64_t count = queues.integer().value_or(0);
  if (count <= 0) {
    queues.invalid("must be positive");
  } else if (count > kQueuesMax) {
    queues.invalid(fmt::format("must not be greater than {}", kQueuesMax));
  }
  const CheckedField hand = queuing["handSize"];
  validate_hand(hand, count);
}

void validate_limit_response(const CheckedField& response) {
  const CheckedField type = response["type"];
  const CheckedField queuing = response["queuing"];
  if (type.text() == "Reject") {
    if (queuing.present()) queuing.forbidden("must be nil if limited.limitResponse.type is not Limited");
  } else if (type.text() == "Queue") {
    if (!queuing.present()) return queuing.required("must not be empty if limited.limitResponse.type is Limited");
    validate_queuing(queuing);
  } else {
    type.not_supported(kResponses);
  }
}

void validate_limited(const CheckedField& limited) {
  validate_shares(limited);
  const CheckedField borrowing = limited["borrowingLimitPercent"];
  if (borrowing.integer().value_or(0) < 0) borrowing.invalid("if specified, must be a non-negative integer");
  const CheckedField response = limited["limitResponse"];
  validate_limit_response(response);
}

void validate_level_spec(const CheckedField& spec, std::string_view name) {
  const CheckedField type = spec["type"];
  const CheckedField limited = spec["limited"];
  const CheckedField exempt = spec["exempt"];
  if ((name == flow::kExempt) != (type.text() == kExemptType)) {
    type.invalid("type must be 'Exempt' if and only if name is 'exempt'");
  }
  if (type.text() == kExemptType) {
    if (limited.present()) limited.forbidden("must be nil if the type is not Limited");
    if (exempt.present()) validate_shares(exempt);
  } else if (type.text() == kLimitedType) {
    if (exempt.present()) exempt.forbidden("must be nil if the type is Limited");
    if (!limited.present()) return limited.required("must not be empty when type is Limited");
    validate_limited(limited);
  } else {
    type.not_supported(kLevelTypes);
  }
}

/// A mandatory level has its fixed spec; of "exempt" the shares may be chosen.
void validate_fixed_level(const api::Json& object, api::FieldErrors& errors) {
  static const flow::Configuration kTable = flow::built_in_configuration();
  flow::Level level = flow::level_of(object);
  level.uid.clear();
  if (level.name == flow::kExempt) {
    const bool is_exempt =
        object.string_at({"spec", "type"}) == kExemptType && !has(value_of(object, "spec"), "limited");
    if (is_exempt) return;
    errors.invalid("spec", value_of(object, "spec"),
                   "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value");
  } else if (level.name == flow::kCatchAll && std::ranges::find(kTable.levels, level) == kTable.levels.end()) {
    errors.invalid("spec", value_of(object, "spec"), "spec of 'catch-all' must equal the fixed value");
  }
}

void validate_priority_level(const api::Json& object, api::FieldErrors& errors) {
  const CheckedField spec(object.find("spec"), "spec", errors);
  validate_level_spec(spec, object.string_at({"metadata", "name"}));
  validate_fixed_level(object, errors);
  validate_flow_conditions(object, errors);
}

void validate_priority_level_update(const api::Json& object, const api::Json& /*old*/, Endpoint endpoint,
                                    api::FieldErrors& errors) {
  if (endpoint == Endpoint::kMain) return validate_priority_level(object, errors);
  validate_flow_conditions(object, errors);
}

api::Json number_cell(const api::Json* around, std::string_view key) {
  const std::optional<std::int64_t> value = around == nullptr ? std::nullopt : integer(*around, key);
  return value ? api::Json(*value) : api::Json("<none>");
}

TableRow priority_level_row(const api::Json& object, WallTime now) {
  const api::Json* limited = object.at({"spec", "limited"});
  const api::Json* queuing = object.at({"spec", "limited", "limitResponse", "queuing"});
  return {{object.string_at({"metadata", "name"}), object.string_at({"spec", "type"}),
           number_cell(limited, "nominalConcurrencyShares"), number_cell(queuing, "queues"),
           number_cell(queuing, "handSize"), number_cell(queuing, "queueLengthLimit"), age_of(object, now)},
          nullptr};
}

}  // namespace

Resource priority_level_kind() {
  static const KindHooks kHooks{.set_defaults = default_priority_level,
                                .validate_create = validate_priority_level,
                                .validate_update = validate_priority_level_update,
                                .columns = kLevelColumns,
                                .table_row = priority_level_row};
  return {.group = "flowcontrol.apiserver.k8s.io",
          .version = "v1",
          .plural = "prioritylevelconfigurations",
          .singular = "prioritylevelconfiguration",
          .kind = "PriorityLevelConfiguration",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("prioritylevelconfigurations"),
          .subresources = kStatusOnly,
          .status_subresource = true,
          .counts_generation = true,
          .status_keeps_metadata = true,
          .requires_version = true,
          .metadata = kFlowChecks,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
