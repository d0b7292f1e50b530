#include "host/files/manifest_files.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kChanges =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr Duration kDebounce = milliseconds(50);

Result<std::string> read_text(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not hold us
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return errno_error(file, errno);
  if (!S_ISREG(status.st_mode)) return invalid(file, "expected a regular file");
  std::string text(kManifestBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0) return errno_error(file, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kManifestBytesMax) return invalid(file, "expected at most {} bytes", kManifestBytesMax);
  text.resize(size);
  return text;
}

Result<std::vector<std::string>> list_files(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return std::vector<std::string>();
  if (error) return errno_error(path, error.value());
  if (!fs::is_directory(status)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    if (it->path().filename().string().starts_with('.') || it->is_directory(unknown)) continue;
    files.push_back(it->path().string());
  }
  if (error) return errno_error(path, error.value());
  if (files.size() > kManifestsMax) {
    return invalid(path, "expected at most {} files, there are {}", kManifestsMax, files.size());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

agent::StaticManifests read_manifests(const std::string& path, ManifestFiles::Parse parse) {
  agent::StaticManifests manifests;
  const auto files = list_files(path);
  if (!files) {
    manifests.problem = files.error().text();
    return manifests;
  }
  for (const std::string& file : *files) {
    const Result<std::string> text = read_text(file);
    if (!text && text.error().code == ErrorCode::kNotFound) continue;  // the file was removed after it was listed
    manifests.files.push_back({file, text ? parse(file, *text) : Result<api::Json>(text.error())});
  }
  return manifests;
}

ManifestFiles::ManifestFiles(runtime::Loop& loop, Options options, Listener listener)
    : loop_(loop), options_(std::move(options)), listener_(std::move(listener)), thread_(loop, 1) {
  inotify_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify_) loop_.watch_fd(inotify_.get(), POLLIN, [this] { on_change(); });
  read();
}

ManifestFiles::~ManifestFiles() {
  if (inotify_) loop_.unwatch_fd(inotify_.get());
  if (timer_) loop_.cancel(*timer_);
}

/// The directory, or the one that the file is in: files are replaced by others of their name.
void ManifestFiles::watch() {
  if (!inotify_) return;
  std::error_code error;
  const fs::path path = fs::absolute(options_.path, error);
  const fs::path directory = fs::is_directory(path, error) ? path : path.parent_path();
  // Watching a directory twice is no error. One that does not exist yet is watched from the next reading on.
  if (::inotify_add_watch(inotify_.get(), directory.c_str(), kChanges) < 0) return;
}

void ManifestFiles::on_change() {
  std::array<char, 4096> events{};
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  if (thread_.busy()) {
    again_ = true;  // the reading may have passed the file; its end sets the timer
    return;
  }
  arm(kDebounce);
}

void ManifestFiles::arm(Duration delay) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.at(loop_.now().mono + delay, [this] {
    timer_.reset();
    read();
  });
}

void ManifestFiles::read() {
  watch();  // watching begins first, so that no later change is missed
  if (thread_.busy()) {
    again_ = true;
    return;
  }
  const bool queued = thread_.submit([this, path = options_.path, parse = options_.parse]() -> runtime::Loop::Task {
    return [this, manifests = read_manifests(path, parse)] {
      arm(std::exchange(again_, false) ? kDebounce : options_.period);
      listener_(manifests);
    };
  });
  if (!queued) arm(options_.period);
}

}  // namespace spillway::host
