#include "policy/lifecycle/lines/kubelet_version.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <system_error>

namespace spillway::lifecycle {
namespace {

struct Version {
  std::array<int, 3> numbers{};
  bool pre_release = false;
};

std::optional<Version> parse_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version;
  for (std::size_t i = 0; i < version.numbers.size(); ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version.numbers[i]);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || version.numbers[i] < 0 || (digits > 1 && text.front() == '0')) return std::nullopt;
    text.remove_prefix(digits);
  }
  if (!text.empty() && text.front() != '-' && text.front() != '+') return std::nullopt;
  version.pre_release = text.starts_with('-');
  return version;
}

}  // namespace

bool is_outdated_kubelet(std::string_view version, const std::array<int, 3>& minimum) {
  const auto parsed = parse_version(version);
  if (!parsed) return true;
  if (parsed->numbers != minimum) return parsed->numbers < minimum;
  return parsed->pre_release;
}

}  // namespace spillway::lifecycle
