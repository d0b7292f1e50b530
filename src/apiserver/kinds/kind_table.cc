// Which kind has which hooks.
#include "apiserver/kind_hooks.h"

namespace spillway::apiserver {

const KindHooks& kind_hooks(std::string_view /*group*/, std::string_view /*kind*/) {
  static constexpr KindHooks kNeutral{};
  return kNeutral;
}

}  // namespace spillway::apiserver
