// The table of kinds and their hooks: the one place where kinds register. Pure.
#pragma once

#include "apiserver/resource/kind_hooks.h"

#include <string_view>

namespace spillway::apiserver::kinds {

/// A KindTable.
const KindHooks& kind_hooks(std::string_view group, std::string_view kind);

}  // namespace spillway::apiserver::kinds
