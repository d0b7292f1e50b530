// A directory tree in the shape of cgroupfs, for what this machine's kernel does not have. Files are what the test puts
// there.
#pragma once

#include "host/cgroup/cgroup.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace spillway::support {

class FakeCgroup {
 public:
  explicit FakeCgroup(host::CgroupVersion version, host::ExtraControllers extra = {});
  ~FakeCgroup();
  FakeCgroup(const FakeCgroup&) = delete;
  FakeCgroup& operator=(const FakeCgroup&) = delete;

  /// A cgroup with the files a kernel makes in it, empty or at their defaults. "" is the root.
  void add(const std::string& path);
  void put(host::Controller controller, const std::string& path, const std::string& file, std::string_view text);
  std::string get(host::Controller controller, const std::string& path, const std::string& file) const;

  host::CgroupMounts mounts() const;
  host::CgroupDir root() const;

 private:
  std::filesystem::path file_of(host::Controller controller, const std::string& path, const std::string& file) const;

  host::CgroupVersion version_;
  host::ExtraControllers extra_;
  std::filesystem::path directory_;
};

}  // namespace spillway::support
