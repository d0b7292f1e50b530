#include "host/logs/log_reader.h"

#include "api/exchange/paced_sink.h"
#include "host/kernel/kernel_file.h"
#include "host/logs/log_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kCheckInterval = milliseconds(250);
/// The first pause for a client that takes too little; each further one is twice as long, up to kCheckInterval.
constexpr Duration kPauseMin = milliseconds(4);

api::Response text_response(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "text/plain"}}, .body = std::move(body)};
}

/// The rest of the file, at most `bytes_max`.
Result<std::string> read_rest(int fd, const std::string& path, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  std::size_t size = 0;
  while (size < bytes_max) {
    const ssize_t got = ::read(fd, text.data() + size, bytes_max - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

bool is_same_file(int fd, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

bool has_bytes(int fd) {
  struct stat held = {};
  return ::fstat(fd, &held) == 0 && held.st_size > 0;
}

}  // namespace

/// The part of a log that existed when it was opened; moves to the thread and back with each slice.
struct LogReader::Stored {
  std::string path;
  LogQuery query;
  LogPrinter printer;
  std::optional<LogSource> source;  // nullopt: not yet opened
};

struct LogReader::Slice {
  std::unique_ptr<Stored> stored;
  std::string text;
  bool last = false;
};

LogReader::Stream::Stream() = default;
LogReader::Stream::~Stream() = default;

LogReader::LogReader(runtime::Loop& loop) : loop_(loop), thread_(loop, kStreamsMax) {}

LogReader::~LogReader() {
  while (!streams_.empty()) close(streams_.begin()->first);
}

/// A slice has text to print, unless it is the last one.
Result<LogReader::Slice> LogReader::read_slice(std::unique_ptr<Stored> stored) {
  if (!stored->source) {
    SPILLWAY_TRY(source, LogSource::open(stored->path, stored->query.tail_lines));
    stored->source = std::move(source);
  }
  Slice slice{std::move(stored), {}, false};
  while (slice.text.empty() && !slice.last) {
    SPILLWAY_TRY(text, slice.stored->source->read(kSliceBytes));
    slice.stored->printer.add(text, slice.text);
    if (slice.stored->printer.problem()) return *slice.stored->printer.problem();
    slice.last = text.empty();
    if (slice.last && !slice.stored->query.follow) slice.stored->printer.finish(slice.text);
  }
  return slice;
}

LogReader::StreamId LogReader::open(std::string path, LogQuery query, std::function<bool()> is_running,
                                    std::shared_ptr<api::ResponseSink> sink) {
  const StreamId id = ++last_id_;
  if (streams_.size() >= kStreamsMax) {
    sink->on_response(text_response(429, fmt::format("{} logs are being read already\n", kStreamsMax)));
    return id;
  }
  auto stored = std::make_unique<Stored>(path, query, LogPrinter(query), std::nullopt);
  if (!submit_slice(id, std::move(stored))) {
    sink->on_response(text_response(429, "too many logs are waiting to be read\n"));
    return id;
  }
  Stream& stream = streams_[id];
  stream.path = std::move(path);
  stream.follow = query.follow;
  stream.is_running = std::move(is_running);
  stream.sink = std::move(sink);
  return id;
}

bool LogReader::submit_slice(StreamId id, std::unique_ptr<Stored> stored) {
  return thread_.submit([this, id, stored = std::move(stored)]() mutable -> runtime::Loop::Task {
    Result<Slice> slice = read_slice(std::move(stored));
    return [this, id, slice = std::move(slice)]() mutable { on_slice(id, std::move(slice)); };
  });
}

void LogReader::on_slice(StreamId id, Result<Slice> slice) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;  // closed meanwhile
  Stream& stream = found->second;
  const std::shared_ptr<api::ResponseSink> sink = stream.sink;
  if (!slice) return fail(id, slice.error());
  const bool last = slice->last || slice->stored->printer.is_full();
  if (last && stream.follow && !slice->stored->printer.is_full()) {
    stream.stage = Stage::kFollowing;
    stream.file = slice->stored->source->take_newest();
    stream.printer = std::move(slice->stored->printer);
  } else if (last) {
    stream.stage = Stage::kEnding;
  } else {
    stream.stored = std::move(slice->stored);
  }
  if (!std::exchange(stream.answered, true)) sink->on_stream(text_response(200, {}));
  if (!slice->text.empty() && !sink->write(std::make_shared<const std::string>(std::move(slice->text)))) return end(id);
  const auto still = streams_.find(id);  // the sink may have closed it
  if (still == streams_.end()) return;
  if (still->second.stage == Stage::kFollowing) follow(id, still->second);
  advance(id);
}

/// Executes the next step, unless it has to wait for the client.
void LogReader::advance(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<api::ResponseSink> sink = found->second.sink;
  if (!sink->write(std::make_shared<const std::string>())) return end(id);  // the client has disconnected
  const auto still = streams_.find(id);
  if (still == streams_.end()) return;
  Stream& stream = still->second;
  const std::size_t waiting = api::waiting_bytes(*sink);
  if (waiting > (stream.stage == Stage::kEnding ? kWaitingBytesLow : kWaitingBytesHigh)) {
    stream.pause = std::clamp(2 * stream.pause, kPauseMin, kCheckInterval);
    return arm(id, stream, stream.pause);
  }
  stream.pause = Duration::zero();
  switch (stream.stage) {
    case Stage::kStored:
      // Cannot fail: the thread has room for one slice of every stream.
      if (stream.stored && !submit_slice(id, std::move(stream.stored))) end(id);
      break;
    case Stage::kFollowing:
      read_on(id);
      break;
    case Stage::kEnding:
      end(id);
      break;
  }
}

void LogReader::follow(StreamId id, Stream& stream) {
  stream.inotify.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const std::string folder = stream.path.substr(0, stream.path.rfind('/'));
  // Without inotify only the timer causes reads.
  if (stream.inotify && ::inotify_add_watch(stream.inotify.get(), folder.c_str(), IN_MODIFY | IN_CREATE) >= 0)
    loop_.watch_fd(stream.inotify.get(), POLLIN, [this, id] {
      const auto found = streams_.find(id);
      if (found == streams_.end()) return;
      std::array<char, 4096> events;  // NOLINT(cppcoreguidelines-pro-type-member-init)
      while (::read(found->second.inotify.get(), events.data(), events.size()) > 0) {
      }
      // For a client that reads too slowly only the timer causes reads, however much is written to the log.
      if (found->second.stage == Stage::kFollowing && found->second.pause == Duration::zero()) advance(id);
    });
}

void LogReader::read_on(StreamId id) {
  Stream& stream = streams_.at(id);
  stream.ended = stream.ended || !stream.is_running();
  const Result<std::string> text = read_rest(stream.file.get(), stream.path, kSliceBytes);
  std::string printed;
  if (text) stream.printer->add(*text, printed);
  const std::shared_ptr<api::ResponseSink> sink = stream.sink;
  if (!printed.empty() && !sink->write(std::make_shared<const std::string>(std::move(printed)))) return end(id);
  const auto still = streams_.find(id);  // the sink may have closed it
  if (still == streams_.end()) return;
  arm(id, still->second, wait_after_reading(still->second, text ? std::optional(text->size()) : std::nullopt));
}

/// The time until the next read, after so many bytes; nullopt: the file could not be read.
Duration LogReader::wait_after_reading(Stream& stream, std::optional<std::size_t> bytes) {
  const bool has_more = bytes == kSliceBytes && !stream.printer->is_full();
  if (has_more) return Duration::zero();
  const bool is_done = !bytes || stream.printer->is_full();
  if (!is_done && !is_same_file(stream.file.get(), stream.path)) return turn_over(stream);
  if (!is_done && !stream.ended) return kCheckInterval;
  stream.stage = Stage::kEnding;
  return Duration::zero();
}

/// The log was rotated. The writer may continue in the older part until the new one is no longer empty: the older part
/// is read once more then, because it was read before the rotation was noticed. Returns the time until the next read.
Duration LogReader::turn_over(Stream& stream) {
  UniqueFd next(::open(stream.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!stream.ended && !(next && has_bytes(next.get()))) return kCheckInterval;
  if (!std::exchange(stream.turned, true)) return Duration::zero();
  stream.turned = false;
  stream.file = std::move(next);
  if (!stream.file) stream.stage = Stage::kEnding;
  return Duration::zero();
}

void LogReader::arm(StreamId id, Stream& stream, Duration wait) {
  if (stream.timer) loop_.cancel(*stream.timer);
  stream.timer = loop_.at(loop_.now().mono + wait, [this, id] {
    if (const auto found = streams_.find(id); found != streams_.end()) found->second.timer.reset();
    advance(id);
  });
}

void LogReader::fail(StreamId id, const Error& error) {
  const Stream& stream = streams_.at(id);
  const std::shared_ptr<api::ResponseSink> sink = stream.sink;
  if (stream.answered) return end(id);
  close(id);
  sink->on_response(text_response(500, error.text() + "\n"));
}

void LogReader::end(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::shared_ptr<api::ResponseSink> sink = found->second.sink;
  close(id);
  sink->on_end();
}

void LogReader::close(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  if (found->second.timer) loop_.cancel(*found->second.timer);
  if (found->second.inotify) loop_.unwatch_fd(found->second.inotify.get());
  streams_.erase(found);
}

}  // namespace spillway::host
