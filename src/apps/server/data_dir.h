// The directory of an API server: its store, its keys, its kubeconfig.
// Thread: main.
#pragma once

#include "base/error.h"

#include <string>

namespace spillway::apps {

/// DIR as given; else /var/lib/spillway for root, ~/.local/share/spillway for others.
std::string resolve_data_dir(const std::string& given);

/// Creates it unless it exists. It holds keys and Secrets: it belongs to its owner, and no other user may write to it.
Outcome make_data_dir(const std::string& path);

/// Path of the database in the directory.
std::string store_file(const std::string& data_dir);

}  // namespace spillway::apps
