// Spillway's version. Thread: any.
#pragma once

#include <string_view>

namespace spillway {

/// The version of the project in the root's CMakeLists.txt: "0.2.0".
std::string_view program_version();

}  // namespace spillway
