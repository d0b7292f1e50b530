// Small files of this program that hold secrets: keys, tokens, kubeconfigs. Thread: any that may block on the disk.
#pragma once

#include "base/error.h"
#include "base/file.h"

#include <string>

namespace spillway::wire {

/// A secret that this program wrote itself (replace_file()). kInvalid: it is no file but a link or something else, it
/// belongs to another user than this process's or root, its group may write it, or others may do anything with it.
Result<std::string> read_private_file(const std::string& path);
/// Makes the folder with mode 0700 if it is missing; its parent must exist. kInvalid: a link or no folder is there, or
/// one that belongs to another user than this process's or root, or that its group or others may write.
Outcome make_private_folder(const std::string& path);

}  // namespace spillway::wire
