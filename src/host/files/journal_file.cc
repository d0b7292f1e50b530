#include "host/files/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace spillway::host {

namespace {

Error failed(const std::string& path, const char* doing) {
  return Error{ErrorCode::kInternalError, fmt::format("cannot {}: {}", doing, std::strerror(errno)), path};
}

}  // namespace

Result<std::unique_ptr<JournalFile>> JournalFile::open(std::string path, telemetry::Log log, std::size_t bytes_max) {
  std::unique_ptr<JournalFile> journal(new JournalFile(std::move(path), std::move(log), bytes_max));  // NOLINT: private
  SPILLWAY_TRY_VOID(journal->reopen());
  return journal;
}

Outcome JournalFile::reopen() {
  file_ = UniqueFd(::open(path_.c_str(), O_CREAT | O_APPEND | O_RDWR | O_CLOEXEC, 0600));
  struct stat status{};
  if (!file_ || fstat(file_.get(), &status) != 0) return failed(path_, "open");
  bytes_ = static_cast<std::size_t>(status.st_size);
  char last = '\n';
  if (bytes_ > 0 && pread(file_.get(), &last, 1, status.st_size - 1) != 1) return failed(path_, "read");
  if (last != '\n' && ::write(file_.get(), "\n", 1) != 1) return failed(path_, "write");
  return {};
}

Result<UniqueFd> JournalFile::duplicate() const {
  UniqueFd copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return failed(path_, "duplicate");
  return copy;
}

void JournalFile::append(const agent::JournalLine& line) {
  const std::string text = std::visit([](const auto& held) { return agent::to_line(held); }, line) + '\n';
  const ssize_t written = ::write(file_.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) {
    // The eviction continues: a full disk must not keep a node from saving its memory.
    log_.error("journal entry was not written", {{"file", path_}, {"error", std::strerror(errno)}});
    return;
  }
  bytes_ += text.size();
  if (bytes_ < bytes_max_) return;
  if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return;
  if (const Outcome opened = reopen(); !opened)
    log_.error("journal cannot continue", {{"error", opened.error().text()}});
}

Result<std::vector<agent::JournalEntry>> JournalFile::read() const {
  return read_journal_files(path_);
}

Result<std::vector<agent::JournalEntry>> read_journal_files(const std::string& path) {
  std::string text;
  const auto append_file = [&text](const std::string& name) -> Outcome {
    const UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return Error{ErrorCode::kNotFound, "no such journal", name};
    if (!file) return failed(name, "open");
    std::array<char, 65536> chunk;
    for (;;) {
      const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
      if (got < 0) return failed(name, "read");
      if (got == 0) return {};
      text.append(chunk.data(), static_cast<std::size_t>(got));
    }
  };
  if (const Outcome older = append_file(path + ".1"); !older && older.error().code != ErrorCode::kNotFound) {
    return older.error();
  }
  SPILLWAY_TRY_VOID(append_file(path));
  return agent::read_journal(text);
}

}  // namespace spillway::host
