#include "host/volumes/mount_points.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace spillway::host {
namespace {

constexpr int kFieldsBefore = 4;

/// mountinfo writes blanks, tabs, line ends and backslashes as \ooo.
std::string unescaped(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool escaped = text[i] == '\\' && i + 3 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8).ptr == &text[i + 1] + 3;
    made += escaped ? static_cast<char>(code) : text[i];
    if (escaped) i += 3;
  }
  return made;
}

}  // namespace

std::vector<std::string> mount_points(std::string_view mountinfo) {
  std::vector<std::string> points;
  while (!mountinfo.empty()) {
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    for (int field = 0; field < kFieldsBefore && !line.empty(); ++field)
      line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
    points.push_back(unescaped(line.substr(0, line.find(' '))));
  }
  return points;
}

std::vector<std::string> mounts_below(const std::vector<std::string>& points, const std::string& real,
                                      const std::string& given) {
  std::vector<std::string> below;
  for (const std::string& point : points)
    if (point.starts_with(real)) below.push_back(given + point.substr(real.size()));
  return below;
}

}  // namespace spillway::host
