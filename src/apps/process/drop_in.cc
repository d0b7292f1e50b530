#include "apps/process/drop_in.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace spillway::apps {

Result<std::vector<std::string>> configuration_files(const std::string& file, const std::string& directory) {
  std::vector<std::string> files;
  if (!directory.empty()) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".conf") files.push_back(it->path().string());
    }
    if (error) return Error{ErrorCode::kNotFound, "cannot be listed: " + error.message(), directory};
    std::ranges::sort(files);
  }
  if (!file.empty()) files.insert(files.begin(), file);
  return files;
}

}  // namespace spillway::apps
