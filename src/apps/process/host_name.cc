#include "apps/process/host_name.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace spillway::apps {

std::string host_name() {
  std::array<char, 256> name{};
  std::string text = gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace spillway::apps
