// Small files that hold secrets: keys, tokens, kubeconfigs. Thread: any that may block on the disk.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::wire {

/// The whole file. kNotFound: there is none; kInvalid: over 4 MiB; else the system's words. `at` is the path.
Result<std::string> read_file(const std::string& path);
/// The same for a secret that this program wrote itself. kInvalid also: it is no file but a link or something else, it
/// belongs to another user than this process's or root, its group may write it, or others may do anything with it.
Result<std::string> read_private_file(const std::string& path);
/// Writes the file with mode 0600, complete or not at all: a reader sees the old text or the new one. It is made
/// exclusively under a name that nobody can guess and then takes the place of whatever is there; a link is replaced,
/// not followed.
Outcome write_private_file(const std::string& path, std::string_view text);
/// Makes the folder with mode 0700 if it is missing; its parent must exist. kInvalid: what is there is a link or no
/// folder, belongs to another user than this process's or root, or may be written by its group or others.
Outcome make_private_folder(const std::string& path);

}  // namespace spillway::wire
