#include "host/logs/container_log.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace spillway::host {
namespace {

constexpr std::size_t kLineBytesMax = 16'384;

std::string part_path(const std::string& path, int part) {
  return part == 0 ? path : fmt::format("{}.{}", path, part);
}

}  // namespace

std::string_view to_string(LogStream stream) {
  return stream == LogStream::kStdout ? "stdout" : "stderr";
}

std::optional<LogRecord> parse_log_record(std::string_view line) {
  LogRecord record;
  std::array<std::string_view, 3> fields;
  for (std::string_view& field : fields) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos || blank == 0) return std::nullopt;
    field = line.substr(0, blank);
    line.remove_prefix(blank + 1);
  }
  if (fields[1] != "stdout" && fields[1] != "stderr") return std::nullopt;
  if (fields[2] != "F" && fields[2] != "P") return std::nullopt;
  record.time = fields[0];
  record.stream = fields[1] == "stdout" ? LogStream::kStdout : LogStream::kStderr;
  record.partial = fields[2] == "P";
  record.text = line;
  return record;
}

std::string format_log_time(WallTime at) {
  const auto day = std::chrono::floor<std::chrono::days>(at.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::duration_cast<std::chrono::days>(day)}};
  const std::chrono::hh_mm_ss clock{at.time_since_epoch() - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}000Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

void LogFramer::append(std::string_view text, char tag, WallTime at, std::string& out) const {
  out += format_log_time(at);
  out += ' ';
  out += to_string(stream_);
  out += ' ';
  out += tag;
  out += ' ';
  out += text;
  out += '\n';
}

void LogFramer::add(std::string_view bytes, WallTime at, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t room = kLineBytesMax - pending_.size();
    const std::size_t end = bytes.substr(0, room + 1).find('\n');
    if (end != std::string_view::npos) {
      pending_ += bytes.substr(0, end);
      append(pending_, 'F', at, out);
      pending_.clear();
      bytes.remove_prefix(end + 1);
      continue;
    }
    const std::string_view piece = bytes.substr(0, room);
    pending_ += piece;
    bytes.remove_prefix(piece.size());
    if (pending_.size() < kLineBytesMax || bytes.empty()) continue;
    append(pending_, 'P', at, out);
    pending_.clear();
  }
}

void LogFramer::finish(WallTime at, std::string& out) {
  if (pending_.empty()) return;
  append(pending_, 'P', at, out);  // the output ended within a line
  pending_.clear();
}

Result<ContainerLog> ContainerLog::create(const std::string& path, LogLimits limits) {
  ContainerLog log;
  log.path_ = path;
  log.limits_ = limits;
  SPILLWAY_TRY_VOID(log.open());
  return log;
}

Outcome ContainerLog::open() {
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!fd_) return errno_error(path_, errno);
  size_ = Bytes{0};
  return {};
}

Outcome ContainerLog::rotate() {
  const int oldest = limits_.files_max - 1;
  if (oldest > 0) {
    if (static_cast<int>(older_.size()) >= oldest) {
      total_ -= older_.back();
      older_.pop_back();
    }
    for (int part = oldest; part > 0; --part)
      static_cast<void>(::rename(part_path(path_, part - 1).c_str(), part_path(path_, part).c_str()));
    older_.insert(older_.begin(), size_);
  } else {
    total_ -= size_;
  }
  return open();
}

Outcome ContainerLog::write(std::string_view records) {
  const Bytes more{static_cast<std::int64_t>(records.size())};
  if (size_ > Bytes{0} && size_ + more > limits_.file_max) SPILLWAY_TRY_VOID(rotate());
  while (!records.empty()) {
    const ssize_t wrote = ::write(fd_.get(), records.data(), records.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno_error(path_, errno);
    size_ += Bytes{wrote};
    total_ += Bytes{wrote};
    records.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace spillway::host
