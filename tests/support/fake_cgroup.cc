#include "support/fake_cgroup.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

namespace spillway::support {
namespace {

using host::CgroupVersion;
using host::Controller;

struct DefaultFile {
  Controller controller;
  std::string_view name;
  std::string_view text;
};

constexpr DefaultFile kV1Files[] = {{Controller::kMemory, "memory.limit_in_bytes", "9223372036854771712\n"},
                                    {Controller::kMemory, "memory.usage_in_bytes", "0\n"},
                                    {Controller::kMemory, "memory.use_hierarchy", "1\n"},
                                    {Controller::kMemory, "memory.stat", "cache 0\nrss 0\ntotal_inactive_file 0\n"},
                                    {Controller::kMemory, "memory.oom_control", "oom_kill_disable 0\noom_kill 0\n"},
                                    {Controller::kMemory, "cgroup.procs", ""},
                                    {Controller::kCpu, "cpu.shares", "1024\n"},
                                    {Controller::kCpu, "cpu.cfs_period_us", "100000\n"},
                                    {Controller::kCpu, "cpu.cfs_quota_us", "-1\n"},
                                    {Controller::kCpu, "cgroup.procs", ""},
                                    {Controller::kCpuacct, "cpuacct.usage", "0\n"},
                                    {Controller::kCpuacct, "cgroup.procs", ""},
                                    {Controller::kPids, "pids.max", "max\n"},
                                    {Controller::kPids, "cgroup.procs", ""},
                                    {Controller::kFreezer, "freezer.state", "THAWED\n"},
                                    {Controller::kFreezer, "cgroup.procs", ""},
                                    {Controller::kHugetlb, "hugetlb.2MB.limit_in_bytes", "9223372036852678656\n"},
                                    {Controller::kHugetlb, "hugetlb.1GB.limit_in_bytes", "9223372035781033984\n"},
                                    {Controller::kHugetlb, "cgroup.procs", ""}};

constexpr DefaultFile kV2Files[] = {{Controller::kMemory, "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n"},
                                    {Controller::kMemory, "cgroup.subtree_control", ""},
                                    {Controller::kMemory, "cgroup.procs", ""},
                                    {Controller::kMemory, "cgroup.events", "populated 0\nfrozen 0\n"},
                                    {Controller::kMemory, "cgroup.kill", ""},
                                    {Controller::kMemory, "cgroup.freeze", "0\n"},
                                    {Controller::kMemory, "memory.current", "0\n"},
                                    {Controller::kMemory, "memory.max", "max\n"},
                                    {Controller::kMemory, "memory.swap.max", "max\n"},
                                    {Controller::kMemory, "memory.oom.group", "0\n"},
                                    {Controller::kMemory, "memory.events", "oom 0\noom_kill 0\n"},
                                    {Controller::kMemory, "memory.stat", "anon 0\nfile 0\ninactive_file 0\n"},
                                    {Controller::kMemory, "cpu.stat", "usage_usec 0\nuser_usec 0\nsystem_usec 0\n"},
                                    {Controller::kMemory, "cpu.weight", "100\n"},
                                    {Controller::kMemory, "cpu.max", "max 100000\n"},
                                    {Controller::kMemory, "pids.max", "max\n"},
                                    {Controller::kMemory, "hugetlb.2MB.max", "max\n"},
                                    {Controller::kMemory, "hugetlb.1GB.max", "max\n"}};

}  // namespace

FakeCgroup::FakeCgroup(CgroupVersion version, host::ExtraControllers extra)
    : version_(version), extra_(std::move(extra)) {
  static std::atomic<int> counter = 0;
  directory_ = std::filesystem::temp_directory_path() / fmt::format("fake-cgroup-{}-{}", ::getpid(), ++counter);
  add("");
}

FakeCgroup::~FakeCgroup() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::filesystem::path FakeCgroup::file_of(Controller controller, const std::string& path,
                                          const std::string& file) const {
  std::filesystem::path hierarchy = directory_;
  if (version_ == CgroupVersion::kV1) hierarchy /= to_string(controller);
  return hierarchy / path / file;
}

void FakeCgroup::add(const std::string& path) {
  const std::span<const DefaultFile> files =
      version_ == CgroupVersion::kV1 ? std::span<const DefaultFile>(kV1Files) : std::span<const DefaultFile>(kV2Files);
  for (const DefaultFile& file : files) {
    std::filesystem::create_directories(file_of(file.controller, path, ""));
    put(file.controller, path, std::string(file.name), file.text);
  }
}

void FakeCgroup::put(Controller controller, const std::string& path, const std::string& file, std::string_view text) {
  std::ofstream(file_of(controller, path, file)) << text;
}

std::string FakeCgroup::get(Controller controller, const std::string& path, const std::string& file) const {
  std::stringstream text;
  text << std::ifstream(file_of(controller, path, file)).rdbuf();
  return text.str();
}

host::CgroupMounts FakeCgroup::mounts() const {
  host::CgroupMounts mounts;
  mounts.version = version_;
  mounts.extra = extra_;
  if (version_ == CgroupVersion::kV2) {
    mounts.unified = directory_.string();
    return mounts;
  }
  for (const Controller controller :
       {Controller::kMemory, Controller::kCpu, Controller::kCpuacct, Controller::kPids, Controller::kFreezer})
    mounts.v1[controller] = (directory_ / to_string(controller)).string();
  for (const Controller controller : extra_) mounts.v1[controller] = (directory_ / to_string(controller)).string();
  return mounts;
}

host::CgroupDir FakeCgroup::root() const {
  return *host::CgroupDir::open_root(mounts());
}

}  // namespace spillway::support
