// The program in the sandbox of a pod, as the build has made it: a part of this binary (pause/pause.cc). Thread: any.
#pragma once

#include <string_view>

namespace spillway::host {

/// The bytes of the static executable; valid as long as the process runs.
std::string_view pause_program();

}  // namespace spillway::host
