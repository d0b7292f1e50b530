#include "host/files/recording_ring.h"

#include "base/file.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "ring-";
constexpr std::string_view kSuffix = ".rec";
constexpr std::string_view kCopies = "/kept";
constexpr std::int64_t kSegments = 16;  // in a full ring
constexpr std::int64_t kSegmentBytesMax = std::int64_t{4} << 20U;

std::optional<std::uint64_t> number_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

/// Makes the directory; an existing one must be ours and no link.
Outcome make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return invalid(path, "{}", errno_error({}, errno).message);
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return invalid(path, "{}", errno_error({}, errno).message);
  if (!S_ISDIR(found.st_mode)) return invalid(path, "is no directory");
  if (found.st_uid != ::geteuid()) return invalid(path, "belongs to user {}", found.st_uid);
  if (::chmod(path.c_str(), 0700) != 0) return invalid(path, "{}", errno_error({}, errno).message);
  return {};
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored_error;  // a directory that cannot be listed counts as empty
  for (const auto& each : fs::directory_iterator(directory, ignored_error)) {
    names.push_back(each.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Plain letters for a file name.
std::string word_of(std::string_view text) {
  std::string word;
  for (const char c : text.substr(0, 40)) word += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  return word;
}

std::string copy_name(WallTime at, std::string_view why) {
  const auto second = std::chrono::floor<seconds>(at.time_since_epoch());
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{}", fmt::gmtime(static_cast<std::time_t>(second.count())), word_of(why));
}

}  // namespace

Result<std::unique_ptr<RecordingRing>> RecordingRing::open(Options options) {
  SPILLWAY_TRY_VOID(make_directory(options.directory));
  std::deque<Segment> segments;
  for (const std::string& name : names_in(options.directory)) {
    const auto number = number_of(name);
    struct stat found = {};
    if (!number || ::lstat((options.directory + "/" + name).c_str(), &found) != 0) continue;
    segments.push_back({.number = *number, .bytes = found.st_size});
  }
  std::ranges::sort(segments, {}, &Segment::number);
  return std::unique_ptr<RecordingRing>(new RecordingRing(std::move(options), std::move(segments)));
}

RecordingRing::RecordingRing(Options options, std::deque<Segment> segments)
    : options_(std::move(options)), segments_(std::move(segments)), thread_("recording") {
  if (!segments_.empty()) next_ = segments_.back().number + 1;
  if (options_.metrics == nullptr) return;
  lost_ = options_.metrics->counter("spillway_recording_lost_total",
                                    "Inputs of the eviction engine that are missing from its recording");
  kept_ = options_.metrics->counter("spillway_recordings_kept_total", "Copies of the recording that were kept aside");
}

RecordingRing::~RecordingRing() {
  thread_.stop();
  drain();
}

std::size_t RecordingRing::segment_bytes() const {
  return static_cast<std::size_t>(std::min(options_.bytes_max.count() / kSegments, kSegmentBytesMax));
}

bool RecordingRing::begin_segment(std::string bytes) {
  broken_ = false;
  return enter({.act = Act::kBegin, .bytes = std::move(bytes)});
}

bool RecordingRing::append(std::string bytes) {
  if (!broken_ && enter({.act = Act::kAppend, .bytes = std::move(bytes)})) return true;
  lost_.add();
  return false;
}

void RecordingRing::keep(std::string_view why) {
  if (!enter({.act = Act::kKeep, .bytes = std::string(why)})) lost_.add();
}

bool RecordingRing::enter(Item item) {
  const std::lock_guard lock(mutex_);
  if (waiting_bytes_ + item.bytes.size() > options_.waiting_max) {
    broken_ = true;
    return false;
  }
  waiting_bytes_ += item.bytes.size();
  waiting_.push_back(std::move(item));
  if (!std::exchange(scheduled_, true)) thread_.loop().post([this] { drain(); });
  return true;
}

void RecordingRing::flush(std::function<void()> done) {
  thread_.loop().post([this, done = std::move(done)] {
    drain();
    done();
  });
}

void RecordingRing::drain() {
  for (;;) {
    std::deque<Item> items;
    {
      const std::lock_guard lock(mutex_);
      items = std::exchange(waiting_, {});
      waiting_bytes_ = 0;
      scheduled_ = !items.empty();
    }
    if (items.empty()) return;
    for (const Item& each : items) carry_out(each);
  }
}

void RecordingRing::carry_out(const Item& item) {
  Outcome done;
  switch (item.act) {
    case Act::kBegin:
      done = begin(item.bytes);
      break;
    case Act::kAppend:
      done = write(item.bytes);
      break;
    case Act::kKeep:
      if (const Outcome kept = copy(item); !kept) {
        options_.log.warning("the recording cannot be kept aside", {{"error", kept.error().text()}});
      }
      return;
  }
  if (!done) return fail(done.error());
  if (item.act != Act::kBegin || !std::exchange(said_, false)) return;
  options_.log.info("recording resumed", {{"directory", options_.directory}});
}

void RecordingRing::fail(const Error& why) {
  file_.reset();
  broken_ = true;
  lost_.add();
  if (std::exchange(said_, true)) return;
  options_.log.warning("the recording cannot be written; later records are missing from it", {{"error", why.text()}});
}

std::string RecordingRing::path_of(std::uint64_t number) const {
  return fmt::format("{}/{}{:020}{}", options_.directory, kPrefix, number, kSuffix);
}

Outcome RecordingRing::begin(const std::string& bytes) {
  file_.reset();
  prune(static_cast<std::int64_t>(bytes.size()));
  const std::string path = path_of(next_);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error(path, errno);
  file_ = std::move(file);
  segments_.push_back({.number = next_++, .bytes = 0});
  return write(bytes);
}

Outcome RecordingRing::write(const std::string& bytes) {
  if (!file_) return {};  // reported already
  Segment& segment = segments_.back();
  prune(static_cast<std::int64_t>(bytes.size()));
  if (const Outcome written = write_all(file_.get(), bytes, path_of(segment.number)); !written) {
    // A frame that is not whole is not read either; without it the space is free again.
    if (::ftruncate(file_.get(), segment.bytes) != 0) segment.bytes += static_cast<std::int64_t>(bytes.size());
    return written;
  }
  segment.bytes += static_cast<std::int64_t>(bytes.size());
  return {};
}

/// Makes room for as much, but for the segment that is being written.
void RecordingRing::prune(std::int64_t room) {
  std::int64_t all = room;
  for (const Segment& each : segments_) all += each.bytes;
  while (all > options_.bytes_max.count() && segments_.size() > (file_ ? 1U : 0U)) {
    all -= segments_.front().bytes;
    ::unlink(path_of(segments_.front().number).c_str());
    segments_.pop_front();
  }
}

Outcome RecordingRing::copy(const Item& item) {
  const WallTime now = thread_.loop().now().wall;
  if (segments_.empty() || (last_copy_ && now - *last_copy_ < options_.keep_interval)) return {};
  const std::string copies = options_.directory + std::string(kCopies);
  SPILLWAY_TRY_VOID(make_directory(copies));
  const std::string target = copies + "/" + copy_name(now, item.bytes);
  SPILLWAY_TRY_VOID(make_directory(target));
  for (const Segment& each : segments_) {
    const std::string from = path_of(each.number);
    const std::string to = target + from.substr(options_.directory.size());
    if (::link(from.c_str(), to.c_str()) != 0 && errno != EEXIST) return errno_error(to, errno);
  }
  last_copy_ = now;
  kept_.add();
  options_.log.info("the recording is kept aside", {{"directory", target}});
  std::vector<std::string> names = recording_copies(options_.directory);
  for (std::size_t i = 0; i + options_.kept_max < names.size(); ++i) {
    std::error_code error;
    fs::remove_all(copies + "/" + names[i], error);
    if (error) options_.log.warning("an old recording cannot be removed", {{"error", error.message()}});
  }
  return {};
}

Result<std::vector<std::string>> recording_segments(const std::string& directory) {
  struct stat found = {};
  if (::stat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return Error{ErrorCode::kNotFound, "there is no recording here", directory};
  }
  std::vector<std::pair<std::uint64_t, std::string>> numbered;
  for (const std::string& name : names_in(directory)) {
    if (const auto number = number_of(name)) numbered.emplace_back(*number, directory + "/" + name);
  }
  std::ranges::sort(numbered);
  std::vector<std::string> paths;
  for (auto& [number, path] : numbered) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> recording_copies(const std::string& directory) {
  return names_in(directory + std::string(kCopies));
}

std::string recording_copy(const std::string& directory, const std::string& name) {
  return directory + std::string(kCopies) + "/" + name;
}

std::optional<std::uint64_t> recording_segment_number(const std::string& path) {
  return number_of(std::string_view(path).substr(path.rfind('/') + 1));
}

Result<std::string> read_recording_file(const std::string& path, std::int64_t bytes_max) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found = {};
  if (!file || ::fstat(file.get(), &found) != 0) return errno_error(path, errno);
  if (!S_ISREG(found.st_mode)) return invalid(path, "is no ordinary file");
  if (found.st_size > bytes_max) return invalid(path, "is longer than {} bytes", bytes_max);
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace spillway::host
