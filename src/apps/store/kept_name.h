// The name under which a store that is replaced is kept.
// Thread: any.
#pragma once

#include <string>

namespace spillway::apps {

/// "STORE.replaced-2026-01-02T03-04-05Z": the name contains the time.
std::string kept_name(const std::string& store);
bool is_there(const std::string& path);

}  // namespace spillway::apps
