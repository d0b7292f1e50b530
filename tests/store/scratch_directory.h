// A temporary directory for one test, removed at its end. Thread: one at a time.
#pragma once

#include "base/check.h"

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace spillway::store {

class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "spillway-store-XXXXXX").string()) {
    SPILLWAY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }

  ~ScratchDirectory() {
    std::error_code problem;
    std::filesystem::remove_all(path_, problem);
  }

  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace spillway::store
