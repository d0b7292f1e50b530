#include "base/version.h"

namespace spillway {

std::string_view program_version() {
  return SPILLWAY_VERSION;
}

}  // namespace spillway
