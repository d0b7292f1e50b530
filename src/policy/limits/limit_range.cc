#include "policy/limits/limit_range.h"

#include "api/object/pod_requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace spillway::limits {
namespace {

using api::Quantity;
using api::ResourceList;

/// The request and limit of one resource, and the amount that the range allows.
struct Amounts {
  std::optional<Quantity> request;
  std::optional<Quantity> limit;
  Quantity allowed;

  /// True if all amounts can be compared in thousandths.
  bool fine() const {
    return value(request) <= api::kMilliComparedMax && value(limit) <= api::kMilliComparedMax &&
           allowed.value() <= api::kMilliComparedMax;
  }

  std::int64_t of(const std::optional<Quantity>& amount) const {
    return fine() ? amount.value_or(Quantity()).milli_value() : value(amount);
  }

  std::int64_t bound() const { return of(allowed); }

 private:
  static std::int64_t value(const std::optional<Quantity>& amount) { return amount.value_or(Quantity()).value(); }
};

std::optional<Quantity> amount_of(const ResourceList& list, const std::string& resource) {
  const auto found = list.find(resource);
  return found == list.end() ? std::nullopt : std::optional(found->second);
}

/// One object of a type against one item of a range. At most one problem for each bound.
class BoundsCheck {
 public:
  BoundsCheck(std::string_view type, const api::ResourceRequirements& asked, std::vector<std::string>& problems)
      : type_(type), asked_(asked), problems_(problems) {}

  void at_least(const ResourceList& least) {
    each(least, [this](const std::string& resource, const Amounts& a) {
      const std::string rule = fmt::format("minimum {} usage per {} is {}", resource, type_, a.allowed.to_string());
      if (!a.request) {
        report("{}.  No request is specified", rule);
      } else if (a.of(a.request) < a.bound()) {
        report("{}, but request is {}", rule, a.request->to_string());
      } else if (a.limit && a.of(a.limit) < a.bound()) {
        report("{}, but limit is {}", rule, a.limit->to_string());
      }
    });
  }

  void at_most(const ResourceList& most) {
    each(most, [this](const std::string& resource, const Amounts& a) {
      const std::string rule = fmt::format("maximum {} usage per {} is {}", resource, type_, a.allowed.to_string());
      if (!a.limit) {
        report("{}.  No limit is specified", rule);
      } else if (a.of(a.limit) > a.bound()) {
        report("{}, but limit is {}", rule, a.limit->to_string());
      } else if (a.request && a.of(a.request) > a.bound()) {
        report("{}, but request is {}", rule, a.request->to_string());
      }
    });
  }

  /// Checks the maximum of a resource that has requests only.
  void requested_at_most(const ResourceList& most) {
    each(most, [this](const std::string& resource, const Amounts& a) {
      const std::string rule = fmt::format("maximum {} usage per {} is {}", resource, type_, a.allowed.to_string());
      if (!a.request) {
        report("{}.  No request is specified", rule);
      } else if (a.of(a.request) > a.bound()) {
        report("{}, but request is {}", rule, a.request->to_string());
      }
    });
  }

  void ratio_at_most(const ResourceList& ratios) {
    each(ratios, [this](const std::string& resource, const Amounts& a) {
      const std::string rule =
          fmt::format("{} max limit to request ratio per {} is {}", resource, type_, a.allowed.to_string());
      if (!a.request || a.of(a.request) == 0) return report("{}, but no request is specified or request is 0", rule);
      if (!a.limit || a.of(a.limit) == 0) return report("{}, but no limit is specified or limit is 0", rule);
      const double ratio = static_cast<double>(a.of(a.limit)) / static_cast<double>(a.of(a.request));
      const bool in_thousandths = a.bound() <= api::kMilliComparedMax;
      const double most =
          in_thousandths ? static_cast<double>(a.allowed.milli_value()) : static_cast<double>(a.bound());
      if ((in_thousandths ? ratio * 1000 : ratio) > most) report("{}, but provided ratio is {:f}", rule, ratio);
    });
  }

 private:
  template <typename Check>
  void each(const ResourceList& bounds, Check check) {
    for (const auto& [resource, allowed] : bounds) {
      if (problems_.size() >= kProblemsMax) return;
      check(resource, Amounts{amount_of(asked_.requests, resource), amount_of(asked_.limits, resource), allowed});
    }
  }

  template <typename... Args>
  void report(fmt::format_string<Args...> text, Args&&... args) {
    problems_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  std::string_view type_;
  const api::ResourceRequirements& asked_;
  std::vector<std::string>& problems_;
};

void check_bounds(const api::LimitRangeItem& item, const api::ResourceRequirements& asked,
                  std::vector<std::string>& problems) {
  BoundsCheck check(item.type, asked, problems);
  check.at_least(item.min);
  check.at_most(item.max);
  check.ratio_at_most(item.max_ratio);
}

/// Fills in defaults; returns the names of resources that were missing in `list`.
std::vector<std::string_view> fill_in(const ResourceList& defaults, ResourceList& list) {
  std::vector<std::string_view> filled;
  for (const auto& [resource, amount] : defaults) {
    if (list.try_emplace(resource, amount).second) filled.emplace_back(resource);
  }
  return filled;
}

/// The defaults for containers from all items of a range; a later item overrides an earlier one.
api::ResourceRequirements defaults_of(const api::LimitRange& range) {
  api::ResourceRequirements defaults;
  for (const api::LimitRangeItem& item : range.limits) {
    if (item.type != api::LimitRangeItem::kContainer) continue;
    for (const auto& [resource, amount] : item.default_requests) defaults.requests.insert_or_assign(resource, amount);
    for (const auto& [resource, amount] : item.default_limits) defaults.limits.insert_or_assign(resource, amount);
  }
  return defaults;
}

}  // namespace

std::string fill_in(const api::LimitRange& range, api::PodSpec& spec) {
  const api::ResourceRequirements defaults = defaults_of(range);
  std::vector<std::string> filled;
  const auto record = [&filled](const std::vector<std::string_view>& resources, std::string_view what,
                                std::string_view kind, std::string_view name) {
    if (!resources.empty())
      filled.push_back(fmt::format("{} {} for {} {}", fmt::join(resources, ", "), what, kind, name));
  };
  const auto fill = [&](std::vector<api::Container>& containers, std::string_view kind) {
    for (api::Container& each : containers) {
      record(fill_in(defaults.requests, each.resources.requests), "request", kind, each.name);
      record(fill_in(defaults.limits, each.resources.limits), "limit", kind, each.name);
    }
  };
  fill(spec.containers, "container");
  fill(spec.init_containers, "init container");
  return filled.empty() ? std::string() : fmt::format("LimitRanger plugin set: {}", fmt::join(filled, "; "));
}

std::vector<std::string> pod_problems(const api::LimitRange& range, const api::Pod& pod) {
  std::vector<std::string> problems;
  for (const api::LimitRangeItem& item : range.limits) {
    if (item.type == api::LimitRangeItem::kContainer) {
      for (const api::Container& each : pod.spec.containers) check_bounds(item, each.resources, problems);
      for (const api::Container& each : pod.spec.init_containers) check_bounds(item, each.resources, problems);
    } else if (item.type == api::LimitRangeItem::kPod) {
      check_bounds(item, {.limits = api::effective_limits(pod, {}), .requests = api::effective_requests(pod, {})},
                   problems);
    }
  }
  return problems;
}

std::vector<std::string> claim_problems(const api::LimitRange& range, const ResourceList& requests) {
  std::vector<std::string> problems;
  const api::ResourceRequirements asked{.limits = {}, .requests = requests};
  for (const api::LimitRangeItem& item : range.limits) {
    if (item.type != api::LimitRangeItem::kClaim) continue;
    BoundsCheck check(item.type, asked, problems);
    check.at_least(item.min);
    check.requested_at_most(item.max);
  }
  return problems;
}

}  // namespace spillway::limits
