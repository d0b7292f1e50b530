#include "apiserver/request/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

namespace spillway::apiserver {
namespace {

std::vector<const HealthCheck*> asked_by(std::string_view page, std::span<const HealthCheck> checks) {
  std::vector<const HealthCheck*> asked;
  for (const HealthCheck& check : checks) {
    if (page == "readyz" || check.cure == HealthCheck::Cure::kRestart) asked.push_back(&check);
  }
  return asked;
}

std::set<std::string, std::less<>> excluded_by(const api::Target& target) {
  std::set<std::string, std::less<>> excluded;
  for (const auto& [name, value] : target.query) {
    if (name == "exclude") excluded.insert(value);
  }
  return excluded;
}

HealthAnswer whole(const api::Target& target, std::string_view page, const std::vector<const HealthCheck*>& checks) {
  std::set<std::string, std::less<>> excluded = excluded_by(target);
  std::string lines;
  bool failed = false;
  for (const HealthCheck* check : checks) {
    if (excluded.erase(check->name) != 0) {
      lines += fmt::format("[+]{} excluded: ok\n", check->name);
    } else if (check->problem.empty()) {
      lines += fmt::format("[+]{} ok\n", check->name);
    } else {
      failed = true;
      lines += fmt::format("[-]{} failed: reason withheld\n", check->name);
    }
  }
  if (!excluded.empty()) {
    std::vector<std::string> unknown;
    for (const std::string& name : excluded) unknown.push_back(fmt::format("{:?}", name));
    lines += fmt::format("warn: some health checks cannot be excluded: no matches for {}\n", fmt::join(unknown, ", "));
  }
  if (failed) return {500, fmt::format("{}{} check failed\n", lines, page)};
  if (target.find("verbose") == nullptr) return {200, "ok"};
  return {200, fmt::format("{}{} check passed\n", lines, page)};
}

}  // namespace

bool is_health_page(const api::Target& target) {
  const std::vector<std::string>& at = target.segments;
  return !at.empty() && (at[0] == "healthz" || at[0] == "livez" || at[0] == "readyz");
}

std::optional<HealthAnswer> health_page(const api::Target& target, std::span<const HealthCheck> checks) {
  if (!is_health_page(target)) return std::nullopt;
  const std::vector<std::string>& at = target.segments;
  const std::vector<const HealthCheck*> asked = asked_by(at[0], checks);
  if (at.size() == 1) return whole(target, at[0], asked);
  const std::string name = fmt::format("{}", fmt::join(at.begin() + 1, at.end(), "/"));
  const auto check = std::ranges::find(asked, name, [](const HealthCheck* each) { return each->name; });
  if (check == asked.end()) return std::nullopt;
  if ((*check)->problem.empty()) return HealthAnswer{200, "ok"};
  return HealthAnswer{500, fmt::format("internal server error: {}\n", (*check)->problem)};
}

}  // namespace spillway::apiserver
