// A temporary folder for one test, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace spillway::wire {

class TempFolder {
 public:
  TempFolder() {
    std::string name = ::testing::TempDir() + "spillway-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }

  ~TempFolder() {
    std::error_code ignored_error;
    std::filesystem::remove_all(path_, ignored_error);
  }

  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }

  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(*this / name).rdbuf();
    return text.str();
  }

  /// Permission bits, e.g. 0600.
  unsigned mode(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(::stat((*this / name).c_str(), &found), 0) << name;
    return found.st_mode & 0777U;
  }

 private:
  std::string path_;
};

}  // namespace spillway::wire
