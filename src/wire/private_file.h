// Small files that hold secrets: keys, tokens, kubeconfigs. Thread: any that may block on the disk.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::wire {

/// The whole file. kNotFound: there is none; kInvalid: over 4 MiB; else the system's words. `at` is the path.
Result<std::string> read_file(const std::string& path);
/// Writes the file with mode 0600, complete or not at all: a reader sees the old text or the new one.
Outcome write_private_file(const std::string& path, std::string_view text);
/// Makes the folder with mode 0700 if it is missing; its parent must exist.
Outcome make_private_folder(const std::string& path);

}  // namespace spillway::wire
