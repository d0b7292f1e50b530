// The directory of an API server: its store, its keys, its kubeconfig.
// Thread: main.
#pragma once

#include "base/error.h"

#include <string>

namespace spillway::apps {

/// DIR as given; else /var/lib/spillway for root, ~/.local/share/spillway for others.
std::string resolve_data_dir(const std::string& given);

/// Makes it, unless it is there. Keys and objects with secrets are in it: it is its owner's alone, or at least nobody
/// else's to write.
Outcome make_data_dir(const std::string& path);

/// The database in it.
std::string store_file(const std::string& data_dir);

}  // namespace spillway::apps
