// LimitRanges: bounds and defaults of the requests of containers, pods and claims of a namespace.
#include "api/object/limit_range.h"
#include "api/text/names.h"
#include "api/text/resource_names.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/fields/resource_names.h"
#include "apiserver/kinds/row_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

using Item = api::LimitRangeItem;

constexpr std::array kTypes{Item::kContainer, Item::kPod, Item::kClaim};

constexpr std::array kLimitRangeColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                        TableColumn{"Created At", "date", "", 0, "When it was created"}};

TableRow limit_range_row(const Json& range, WallTime) {
  return {{std::string(range.string_at({"metadata", "name"})),
           std::string(range.string_at({"metadata", "creationTimestamp"}))},
          {}};
}

/// Copies amounts from `from` to `into`, for resources that `into` lacks.
void fill(Json& item, std::string_view from, std::string_view into) {
  const Json amounts = value_of(item, from);  // a copy: a new member may move the others
  if (amounts.if_object() == nullptr) return;
  for (const auto& [resource, amount] : *amounts.if_object()) {
    Json& at = item.make({into, resource});
    if (at.is_null()) at = amount;
  }
}

/// The limit of a container is the most there may be; its request is its limit, or else the least there must be.
void default_limit_range(Json& range) {
  Json* spec = range.find("spec");
  Json::Array* items = spec == nullptr ? nullptr : elements(*spec, "limits");
  if (items == nullptr) return;
  for (Json& item : *items) {
    if (text(item, "type") != Item::kContainer) continue;
    fill(item, "max", "default");
    fill(item, "default", "defaultRequest");
    fill(item, "min", "defaultRequest");
  }
}

void check_type(const CheckedField& type) {
  const auto problems = api::qualified_name_errors(type.text());
  type.require_valid(problems);
  if (!problems.empty() || type.text().find('/') != std::string_view::npos) return;
  if (std::ranges::find(kTypes, type.text()) == kTypes.end())
    type.invalid("must be a standard limit type or fully qualified");
}

/// One resource of an item.
class Bounds {
 public:
  Bounds(const CheckedField& item, std::string_view resource)
      : resource_(resource),
        max_(item["max"]),
        min_(item["min"]),
        limit_(item["default"]),
        request_(item["defaultRequest"]),
        ratio_(item["maxLimitRequestRatio"]) {}

  void check() const {
    const CheckedField min = min_.key(resource_);
    const CheckedField max = max_.key(resource_);
    const CheckedField limit = limit_.key(resource_);
    const CheckedField request = request_.key(resource_);
    require_order(min, max, min, "min value {} is greater than max value {}");
    require_order(min, request, request, "min value {} is greater than default request value {}");
    require_order(request, max, request, "default request value {} is greater than max value {}");
    require_order(request, limit, request, "default request value {} is greater than default limit value {}");
    require_order(min, limit, limit, "min value {} is greater than default value {}");
    require_order(limit, max, limit, "default value {} is greater than max value {}");
    check_ratio();
    const auto limits = limit.quantity();
    const auto requests = request.quantity();
    if (!api::allows_overcommit(resource_) && limits && requests && *limits != *requests) {
      request.invalid(fmt::format("default value {} must equal to defaultRequest value {} in {}", limits->to_string(),
                                  requests->to_string(), resource_));
    }
  }

 private:
  static void require_order(const CheckedField& less, const CheckedField& more, const CheckedField& wrong,
                            fmt::format_string<std::string, std::string> problem) {
    const auto first = less.quantity();
    const auto second = more.quantity();
    if (first && second && *first > *second)
      wrong.invalid(fmt::format(problem, first->to_string(), second->to_string()));
  }

  void check_ratio() const {
    const CheckedField field = ratio_.key(resource_);
    const auto ratio = field.quantity();
    if (!ratio) return;
    if (*ratio < api::Quantity::of_units(1)) field.invalid(fmt::format("ratio {} is less than 1", ratio->to_string()));
    const auto min = min_.key(resource_).quantity();
    const auto max = max_.key(resource_).quantity();
    if (!min || !max) return;
    const bool fine = std::max({ratio->value(), min->value(), max->value()}) < api::kMilliComparedMax;
    const double allowed =
        fine ? static_cast<double>(ratio->milli_value()) / 1000 : static_cast<double>(ratio->value());
    const double possible = fine ? static_cast<double>(max->milli_value()) / static_cast<double>(min->milli_value())
                                 : static_cast<double>(max->value()) / static_cast<double>(min->value());
    if (allowed > possible)
      field.invalid(fmt::format("ratio {} is greater than max/min = {:f}", ratio->to_string(), possible));
  }

  std::string_view resource_;
  CheckedField max_;
  CheckedField min_;
  CheckedField limit_;
  CheckedField request_;
  CheckedField ratio_;
};

void check_item(const CheckedField& item, std::set<std::string_view>& types) {
  const CheckedField type = item["type"];
  check_type(type);
  if (!types.insert(type.text()).second) type.duplicate();
  const bool of_containers = type.text() == Item::kContainer || type.text() == Item::kPod;
  std::set<std::string_view> resources;
  const auto check_list = [&](std::string_view list) {
    const CheckedField amounts = item[list];
    amounts.each_key([&](std::string_view resource, const CheckedField& amount) {
      of_containers ? check_container_resource_name(resource, amount) : check_resource_name(resource, amount);
      resources.insert(resource);
    });
  };
  check_list("max");
  check_list("min");
  for (const std::string_view list : {"default", "defaultRequest"}) {
    if (type.text() != Item::kPod) {
      check_list(list);
    } else if (const CheckedField amounts = item[list];
               amounts.json().if_object() && !amounts.json().if_object()->empty()) {
      amounts.forbidden("may not be specified when `type` is 'Pod'");
    }
  }
  if (type.text() == Item::kClaim) {
    const CheckedField min = item["min"];
    const CheckedField max = item["max"];
    if (!min.key("storage") && !max.key("storage")) {
      const CheckedField limits = item["limits"];
      limits.required("either minimum or maximum storage value is required, but neither was provided");
    }
  }
  check_list("maxLimitRequestRatio");
  for (const std::string_view resource : resources) {
    if (item.full()) return;
    Bounds(item, resource).check();
  }
}

void validate_limit_range(const Json& range, api::FieldErrors& errors) {
  const CheckedField spec(range.find("spec"), "spec", errors);
  const CheckedField limits = spec["limits"];
  std::set<std::string_view> types;
  limits.each([&types](const CheckedField& item) { check_item(item, types); });
}

}  // namespace

Resource limit_range_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"limits"};
  static const KindHooks kHooks{.set_defaults = default_limit_range,
                                .validate_create = validate_limit_range,
                                .columns = kLimitRangeColumns,
                                .table_row = limit_range_row};
  return {.version = "v1",
          .plural = "limitranges",
          .singular = "limitrange",
          .kind = "LimitRange",
          .verbs = kAllVerbs,
          .storage = below("limitranges"),
          .short_names = kShortNames,
          .put_creates = true,
          .metadata = kWholeOnly,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
