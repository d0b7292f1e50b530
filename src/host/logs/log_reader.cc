#include "host/logs/log_reader.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr std::size_t kBeginningBytesMax = 16U << 20;
constexpr std::size_t kTurnBytesMax = 262'144;
constexpr std::size_t kStreamsMax = 100;
constexpr int kPartsMax = 100;
constexpr Duration kLookEvery = milliseconds(250);

api::Response text_response(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(body)};
}

/// What is left of the file, at most `bytes_max`.
Result<std::string> read_rest(int fd, const std::string& path, std::size_t bytes_max) {
  std::string text;
  std::array<char, 65'536> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (text.size() < bytes_max) {
    const ssize_t got = ::read(fd, chunk.data(), std::min(chunk.size(), bytes_max - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// The newest `bytes_max` bytes of a file, from the start of a line; leaves the descriptor at the end.
Result<std::string> read_end(int fd, const std::string& path, std::size_t bytes_max) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const off_t start = std::max<off_t>(0, size - static_cast<off_t>(bytes_max));
  if (size < 0 || ::lseek(fd, start, SEEK_SET) < 0) return errno_error(path, errno);
  SPILLWAY_TRY(text, read_rest(fd, path, static_cast<std::size_t>(size - start)));
  if (start > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

struct LogReader::Beginning {
  std::string text;
  LogPrinter printer;
  UniqueFd file;
};

LogReader::LogReader(runtime::Loop& loop) : loop_(loop), thread_(loop, kStreamsMax) {}

LogReader::~LogReader() {
  while (!streams_.empty()) close(streams_.begin()->first);
}

Result<LogReader::Beginning> LogReader::read_beginning(const std::string& path, const LogQuery& query,
                                                       LogPrinter printer) {
  Beginning beginning{{}, std::move(printer), UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))};
  if (!beginning.file) return errno_error(path, errno);
  std::vector<std::string> parts;  // newest first
  std::size_t bytes = 0;
  std::int64_t lines = 0;
  for (int part = 0; part < kPartsMax && bytes < kBeginningBytesMax; ++part) {
    const std::string name = part == 0 ? path : fmt::format("{}.{}", path, part);
    const UniqueFd older(part == 0 ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (part > 0 && !older) break;
    SPILLWAY_TRY(text, read_end(part == 0 ? beginning.file.get() : older.get(), name, kBeginningBytesMax - bytes));
    bytes += text.size();
    lines += std::ranges::count(text, '\n');
    parts.push_back(std::move(text));
    if (query.tail_lines && lines >= *query.tail_lines) break;
  }
  std::int64_t skipped = query.tail_lines ? std::max<std::int64_t>(0, lines - *query.tail_lines) : 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const std::int64_t here = std::ranges::count(*part, '\n');
    const std::int64_t kept = std::max<std::int64_t>(0, here - skipped);
    beginning.printer.add(skipped > 0 ? tail_of(*part, kept) : std::string_view(*part), beginning.text);
    skipped = std::max<std::int64_t>(0, skipped - here);
  }
  return beginning;
}

LogReader::StreamId LogReader::open(std::string path, LogQuery query, std::function<bool()> is_running,
                                    std::shared_ptr<api::ResponseSink> sink) {
  const StreamId id = ++last_id_;
  if (streams_.size() >= kStreamsMax) {
    sink->on_response(text_response(429, fmt::format("{} logs are being read already\n", kStreamsMax)));
    return id;
  }
  const bool queued = thread_.submit([this, id, path, query]() -> runtime::Loop::Task {
    Result<Beginning> beginning = read_beginning(path, query, LogPrinter(query));
    return [this, id, beginning = std::move(beginning)]() mutable { on_beginning(id, std::move(beginning)); };
  });
  if (!queued) {
    sink->on_response(text_response(429, "too many logs are waiting to be read\n"));
    return id;
  }
  streams_.emplace(id, Stream{.path = std::move(path),
                              .printer = LogPrinter(query),
                              .follow = query.follow,
                              .is_running = std::move(is_running),
                              .sink = std::move(sink)});
  return id;
}

void LogReader::on_beginning(StreamId id, Result<Beginning> beginning) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;  // closed meanwhile
  Stream& stream = found->second;
  if (!beginning) {
    const std::shared_ptr<api::ResponseSink> sink = stream.sink;
    close(id);
    return sink->on_response(text_response(500, beginning.error().text() + "\n"));
  }
  if (!stream.follow) {
    const std::shared_ptr<api::ResponseSink> sink = stream.sink;
    close(id);
    return sink->on_response(text_response(200, std::move(beginning->text)));
  }
  stream.printer = std::move(beginning->printer);
  stream.file = std::move(beginning->file);
  const std::shared_ptr<api::ResponseSink> sink = stream.sink;
  sink->on_stream(text_response(200, {}));
  if (!beginning->text.empty() && !sink->write(std::make_shared<const std::string>(std::move(beginning->text))))
    return finish(id);
  if (const auto still = streams_.find(id); still != streams_.end()) watch(id, still->second);
}

void LogReader::watch(StreamId id, Stream& stream) {
  stream.inotify.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const std::string folder = stream.path.substr(0, stream.path.rfind('/'));
  // Without it the timer alone looks.
  if (stream.inotify && ::inotify_add_watch(stream.inotify.get(), folder.c_str(), IN_MODIFY | IN_CREATE) >= 0)
    loop_.watch_fd(stream.inotify.get(), POLLIN, [this, id] {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return;
      std::array<char, 4096> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
      while (::read(found->second.inotify.get(), events.data(), events.size()) > 0) {
      }
      continue_stream(id);
    });
  continue_stream(id);
}

void LogReader::continue_stream(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  stream.ended = stream.ended || !stream.is_running();
  const Result<std::string> text = read_rest(stream.file.get(), stream.path, kTurnBytesMax);
  std::string printed;
  if (text) stream.printer.add(*text, printed);
  const bool full = stream.printer.is_full();
  const std::shared_ptr<api::ResponseSink> sink = stream.sink;
  if (!printed.empty() && !sink->write(std::make_shared<const std::string>(std::move(printed)))) return finish(id);
  if (!text || full) return finish(id);
  const auto still = streams_.find(id);  // the sink may have closed it
  if (still == streams_.end()) return;
  Duration wait = kLookEvery;
  if (text->size() == kTurnBytesMax) {
    wait = Duration::zero();
  } else if (!is_same_file(stream.file.get(), stream.path)) {  // rotated, and read to its end
    UniqueFd next(::open(stream.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!next) return finish(id);
    stream.file = std::move(next);
    wait = Duration::zero();
  } else if (stream.ended) {
    return finish(id);
  }
  if (stream.timer) loop_.cancel(*stream.timer);
  stream.timer = loop_.at(loop_.now().mono + wait, [this, id] { continue_stream(id); });
}

void LogReader::finish(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<api::ResponseSink> sink = found->second.sink;
  close(id);
  sink->on_end();
}

void LogReader::close(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::optional<runtime::Loop::TimerId> timer = found->second.timer;
  if (timer) loop_.cancel(*timer);
  if (found->second.inotify) loop_.unwatch_fd(found->second.inotify.get());
  streams_.erase(found);
}

}  // namespace spillway::host
