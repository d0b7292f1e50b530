// Assertions about the program itself, never about input. SPILLWAY_CHECK is always on; SPILLWAY_DCHECK in dev builds.
// Thread: any.
#pragma once

#include <string_view>

namespace spillway {

/// Prints one line to standard error and aborts.
[[noreturn]] void check_failed(std::string_view expression, std::string_view file, int line);

}  // namespace spillway

#define SPILLWAY_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::spillway::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define SPILLWAY_DCHECK(condition) void(0)
#else
#define SPILLWAY_DCHECK(condition) SPILLWAY_CHECK(condition)
#endif
