#include "host/disk/disk_usage.h"

#include "base/unique_fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::size_t kDirectoryDepthMax = 256;
constexpr std::uint64_t kBlockBytes = 512;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

using OpenDirectory = std::unique_ptr<DIR, CloseDirectory>;

OpenDirectory open_directory(int parent, const char* name) {
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return nullptr;
  OpenDirectory directory(::fdopendir(fd.get()));
  if (directory) static_cast<void>(fd.release());
  return directory;
}

}  // namespace

struct DirectoryWalk::Impl {
  std::vector<OpenDirectory> open;  // from the top down to where we are
  std::set<std::pair<dev_t, ino_t>> linked;
  dev_t device = 0;
  DirectoryUsage found;
  bool failed = false;

  void count(const struct stat& status) {
    if (!S_ISDIR(status.st_mode) && status.st_nlink > 1 && !linked.emplace(status.st_dev, status.st_ino).second) return;
    found.used_bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
    ++found.inodes;
  }
};

DirectoryWalk::DirectoryWalk(const std::string& path) : impl_(std::make_unique<Impl>()) {
  OpenDirectory top = open_directory(AT_FDCWD, path.c_str());
  struct stat status = {};
  if (!top || ::fstat(::dirfd(top.get()), &status) != 0) {
    impl_->failed = true;
    return;
  }
  impl_->device = status.st_dev;
  impl_->count(status);
  impl_->open.push_back(std::move(top));
}

DirectoryWalk::~DirectoryWalk() = default;
DirectoryWalk::DirectoryWalk(DirectoryWalk&&) noexcept = default;
DirectoryWalk& DirectoryWalk::operator=(DirectoryWalk&&) noexcept = default;

bool DirectoryWalk::step(std::size_t files_max) {
  for (std::size_t seen = 0; seen < files_max && !impl_->open.empty(); ++seen) {
    DIR* here = impl_->open.back().get();
    const dirent* entry = ::readdir(here);  // NOLINT(concurrency-mt-unsafe): a stream of our own
    if (entry == nullptr) {
      impl_->open.pop_back();
      continue;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status = {};
    if (::fstatat(::dirfd(here), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed meanwhile
    if (status.st_dev != impl_->device) continue;
    impl_->count(status);
    if (impl_->found.inodes > kFilesMax) impl_->failed = true;
    if (impl_->failed) impl_->open.clear();
    if (impl_->failed || !S_ISDIR(status.st_mode) || impl_->open.size() >= kDirectoryDepthMax) continue;
    if (OpenDirectory below = open_directory(::dirfd(here), entry->d_name)) impl_->open.push_back(std::move(below));
  }
  return impl_->open.empty();
}

std::optional<DirectoryUsage> DirectoryWalk::result() const {
  return impl_->failed ? std::nullopt : std::optional(impl_->found);
}

DiskUsage::DiskUsage(runtime::Loop& loop, Budget budget) : loop_(loop), budget_(budget), thread_(loop, 1) {}

DiskUsage::~DiskUsage() {
  if (timer_) loop_.cancel(*timer_);
}

void DiskUsage::refresh(std::vector<Place> places) {
  std::set<std::string> known;
  for (const Place& place : places) known.insert(place.uid);
  std::erase_if(answers_, [&](const auto& answer) { return !known.contains(answer.first); });
  if (walking_ || (ended_ && loop_.now().mono - *ended_ < budget_.between_rounds)) return;
  walking_ = true;
  round_ = std::move(places);
  next_ = 0;
  walk_next();
}

void DiskUsage::walk_next() {
  if (next_ == round_.size()) {
    walking_ = false;
    ended_ = loop_.now().mono;
    return;
  }
  step(nullptr);
}

void DiskUsage::step(std::shared_ptr<DirectoryWalk> walk) {
  const Place place = round_[next_];
  const bool queued = thread_.submit([this, walk, place, files = budget_.files]() mutable -> runtime::Loop::Task {
    if (!walk) walk = std::make_shared<DirectoryWalk>(place.path);
    const bool done = walk->step(files);
    return [this, walk, done, uid = place.uid]() mutable {
      if (!done) {
        timer_ = loop_.at(loop_.now().mono + budget_.pause, [this, walk] {
          timer_.reset();
          step(walk);
        });
        return;
      }
      if (auto usage = walk->result()) {
        usage->at = loop_.now().wall;
        answers_[uid] = *usage;
      } else {
        answers_.erase(uid);
      }
      ++next_;
      walk_next();
    };
  });
  if (queued) return;
  walking_ = false;  // the thread is stuck in a call; the next round tries again
  ended_ = loop_.now().mono;
}

std::optional<DirectoryUsage> DiskUsage::latest(const std::string& uid) const {
  const auto found = answers_.find(uid);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace spillway::host
