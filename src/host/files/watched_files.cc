#include "host/files/watched_files.h"

#include "base/file.h"

#include <poll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::uint32_t kReplacements =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR;
/// From the first change to the reading: a certificate and its key are seldom written in one step.
constexpr Duration kChangeWait = milliseconds(200);

bool is_same(const Result<std::string>& a, const Result<std::string>& b) {
  if (a.has_value() != b.has_value()) return false;
  return a ? *a == *b : a.error().text() == b.error().text();
}

WatchedFiles::Texts read_texts(const std::vector<std::string>& paths) {
  WatchedFiles::Texts texts;
  for (const std::string& path : paths) texts.push_back(read_file(path));
  return texts;
}

}  // namespace

WatchedFiles::WatchedFiles(runtime::Loop& loop, std::vector<std::string> paths, Texts known, Listener listener,
                           Duration period)
    : loop_(loop),
      paths_(std::move(paths)),
      known_(std::move(known)),
      listener_(std::move(listener)),
      period_(period),
      thread_(loop, 1) {
  inotify_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify_) loop_.watch_fd(inotify_.get(), POLLIN, [this] { on_change(); });
  read();
}

WatchedFiles::~WatchedFiles() {
  if (inotify_) loop_.unwatch_fd(inotify_.get());
  if (timer_) loop_.cancel(*timer_);
}

/// Watches the folders of the files. Watching one twice is no error; one that does not exist yet is watched from the
/// next reading on.
void WatchedFiles::watch() {
  if (!inotify_) return;
  for (const std::string& path : paths_) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
    static_cast<void>(::inotify_add_watch(inotify_.get(), folder.c_str(), kReplacements));
  }
}

void WatchedFiles::on_change() {
  std::array<char, 4096> events{};
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  if (!std::exchange(change_waits_, true)) arm(kChangeWait);
}

void WatchedFiles::arm(Duration delay) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.at(loop_.now().mono + delay, [this] {
    timer_.reset();
    change_waits_ = false;
    read();
  });
}

void WatchedFiles::read() {
  watch();  // watching begins first, so that no later change is missed
  if (thread_.busy()) {
    again_ = true;
    return;
  }
  const bool queued = thread_.submit([this, paths = paths_]() -> runtime::Loop::Task {
    return [this, texts = read_texts(paths)]() mutable { on_texts(std::move(texts)); };
  });
  if (!queued) arm(period_);
}

void WatchedFiles::on_texts(Texts texts) {
  if (!change_waits_) {
    change_waits_ = std::exchange(again_, false);
    arm(change_waits_ ? kChangeWait : period_);
  }
  if (std::ranges::equal(texts, known_, is_same)) return;
  known_ = texts;
  listener_(texts);
}

}  // namespace spillway::host
