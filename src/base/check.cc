#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace spillway {

void check_failed(std::string_view expression, std::string_view file, int line) {
  std::fprintf(stderr, "spillway: internal error: %.*s (%.*s:%d)\n", static_cast<int>(expression.size()),
               expression.data(), static_cast<int>(file.size()), file.data(), line);
  std::abort();
}

}  // namespace spillway
