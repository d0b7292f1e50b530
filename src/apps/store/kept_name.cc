#include "apps/store/kept_name.h"

#include "api/text/time_text.h"
#include "runtime/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace spillway::apps {

std::string kept_name(const std::string& store) {
  std::string now = api::format_time(runtime::RealClock::read().wall);
  std::ranges::replace(now, ':', '-');
  return fmt::format("{}.replaced-{}", store, now);
}

bool is_there(const std::string& path) {
  std::error_code problem;
  return std::filesystem::exists(path, problem);
}

}  // namespace spillway::apps
