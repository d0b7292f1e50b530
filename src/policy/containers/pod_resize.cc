#include "policy/containers/pod_resize.h"

#include "api/codec/codec.h"
#include "api/object/pod_requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

namespace spillway::containers {
namespace {

using api::Json;

constexpr std::array<std::string_view, 2> kResizable{"cpu", "memory"};

api::Quantity amount_in(const api::ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() ? api::Quantity() : found->second;
}

enum class Growth : std::uint8_t { kNone, kGrows, kShrinks };

/// No limit is more than any.
template <typename Amount>
Growth growth_of_limit(const std::optional<Amount>& before, const std::optional<Amount>& after) {
  if (before == after) return Growth::kNone;
  return !after || (before && *before < *after) ? Growth::kGrows : Growth::kShrinks;
}

Growth growth_of(ResizedResource resource, const GroupChange& change) {
  if (resource == ResizedResource::kMemory)
    return growth_of_limit(change.before.memory_limit, change.after.memory_limit);
  const Growth limit = growth_of_limit(change.before.cpu_limit_milli, change.after.cpu_limit_milli);
  if (limit != Growth::kNone || change.before.cpu_request_milli == change.after.cpu_request_milli) return limit;
  return change.before.cpu_request_milli < change.after.cpu_request_milli ? Growth::kGrows : Growth::kShrinks;
}

Json entry_of(const api::Container& container) {
  return Json::object({{"name", container.name}, {"resources", to_json(container.resources)}});
}

Json entries_of(const std::vector<api::Container>& containers) {
  Json list = Json::array();
  for (const api::Container& each : containers) list.if_array()->push_back(entry_of(each));
  return list;
}

}  // namespace

Json to_json(const api::ResourceRequirements& resources) {
  api::PodSpec holder;
  holder.resources = resources;
  const Json encoded = api::encode(holder);
  const Json* found = encoded.find("resources");
  return found == nullptr ? Json::object() : *found;
}

Result<api::ResourceRequirements> parse_resources(const Json& document) {
  SPILLWAY_TRY(holder, api::decode<api::PodSpec>(Json::object({{"resources", document}})));
  return holder.resources.value_or(api::ResourceRequirements());
}

PodResources resources_of(const api::PodSpec& spec) {
  PodResources made{.containers = {}, .whole = spec.resources};
  for (const auto* list : {&spec.init_containers, &spec.containers}) {
    for (const api::Container& each : *list) made.containers.insert_or_assign(each.name, each.resources);
  }
  return made;
}

bool has_resources(const api::PodSpec& spec, const PodResources& resources) {
  if (spec.resources != resources.whole) return false;
  std::size_t named = 0;
  for (const auto* list : {&spec.init_containers, &spec.containers}) {
    for (const api::Container& each : *list) {
      const auto found = resources.containers.find(each.name);
      if (found == resources.containers.end() || found->second != each.resources) return false;
      ++named;
    }
  }
  return named == resources.containers.size();
}

void set_resources(api::PodSpec& spec, const PodResources& resources) {
  spec.resources = resources.whole;
  for (auto* list : {&spec.init_containers, &spec.containers}) {
    for (api::Container& each : *list) {
      const auto found = resources.containers.find(each.name);
      if (found != resources.containers.end()) each.resources = found->second;
    }
  }
}

bool raises_requests(const api::PodSpec& before, const api::PodSpec& after) {
  const api::ResourceList old = api::effective_requests(before);
  const api::ResourceList now = api::effective_requests(after);
  return std::ranges::any_of(
      kResizable, [&](std::string_view resource) { return amount_in(old, resource) < amount_in(now, resource); });
}

std::vector<ResizeStep> resize_steps(const GroupChange& pod, std::span<const GroupChange> containers) {
  std::vector<ResizeStep> steps;
  for (const ResizedResource resource : {ResizedResource::kMemory, ResizedResource::kCpu}) {
    const auto add = [&](const GroupChange& change, Growth wanted) {
      if (growth_of(resource, change) != wanted) return;
      steps.push_back({.container = change.container,
                       .resource = resource,
                       .amounts = change.after,
                       .lowers_memory = resource == ResizedResource::kMemory && wanted == Growth::kShrinks});
    };
    add(pod, Growth::kGrows);
    for (const GroupChange& each : containers) add(each, Growth::kShrinks);
    for (const GroupChange& each : containers) add(each, Growth::kGrows);
    add(pod, Growth::kShrinks);
  }
  return steps;
}

std::optional<std::string> refuse_to_lower(std::span<const ResizeStep> steps, std::span<const MemoryUse> uses) {
  std::vector<std::string> problems;
  for (const ResizeStep& step : steps) {
    if (!step.lowers_memory || !step.amounts.memory_limit) continue;
    const auto use = std::ranges::find(uses, step.container, &MemoryUse::container);
    if (use == uses.end() || use->used < *step.amounts.memory_limit) continue;
    const std::string limited =
        step.container.empty() ? std::string("pod") : fmt::format("container \"{}\"", step.container);
    problems.push_back(fmt::format("attempting to set {} memory limit ({}) below current usage ({})", limited,
                                   step.amounts.memory_limit->count(), use->used.count()));
  }
  if (problems.empty()) return std::nullopt;
  const std::string text = problems.size() == 1 ? problems.front() : fmt::format("[{}]", fmt::join(problems, ", "));
  return "cannot decrease memory limits: " + text;
}

std::strong_ordering operator<=>(const ResizeRank& a, const ResizeRank& b) {
  if (const auto c = a.raises_requests <=> b.raises_requests; c != 0) return c;
  if (const auto c = b.priority <=> a.priority; c != 0) return c;
  if (const auto c = b.guaranteed <=> a.guaranteed; c != 0) return c;
  const auto since = [](const ResizeRank& rank) { return rank.pending_since.value_or(WallTime::max()); };
  if (const auto c = since(a) <=> since(b); c != 0) return c;
  return std::tie(a.pod, a.uid) <=> std::tie(b.pod, b.uid);
}

std::string resize_details(const api::PodSpec& spec, std::int64_t generation, std::string_view error) {
  std::string text = "{";
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{}\"{}\":{}", text.size() > 1 ? "," : "", name, value);
  };
  if (!spec.init_containers.empty()) add("initContainers", api::to_text(entries_of(spec.init_containers)));
  if (!spec.containers.empty()) add("containers", api::to_text(entries_of(spec.containers)));
  if (generation != 0) add("generation", fmt::format("{}", generation));
  if (!error.empty()) add("error", api::to_text(Json(error)));
  return text + "}";
}

api::PodCondition resize_condition(std::string_view type, std::string_view reason, std::string message,
                                   std::int64_t generation, const std::optional<api::PodCondition>& before,
                                   WallTime now) {
  const bool same = before && before->reason == reason && before->last_transition_time;
  return {.type = std::string(type),
          .status = "True",
          .reason = std::string(reason),
          .message = std::move(message),
          .last_probe_time = now,
          .last_transition_time = same ? before->last_transition_time : now,
          .observed_generation = generation};
}

}  // namespace spillway::containers
