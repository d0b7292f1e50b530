#include "host/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
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
  return {};
}

Result<UniqueFd> JournalFile::duplicate() const {
  UniqueFd copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) return failed(path_, "duplicate");
  return copy;
}

void JournalFile::append(const agent::JournalEntry& entry) {
  const std::string line = agent::to_line(entry) + '\n';
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    // The eviction goes on: a full disk must not keep a node from saving its memory.
    log_.error("journal entry was not written", {{"file", path_}, {"error", std::strerror(errno)}});
    return;
  }
  bytes_ += line.size();
  if (bytes_ < bytes_max_) return;
  if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return;
  if (const Outcome opened = reopen(); !opened)
    log_.error("journal cannot continue", {{"error", opened.error().text()}});
}

Result<std::vector<agent::JournalEntry>> JournalFile::read() const {
  std::string text;
  std::array<char, 65536> chunk;
  for (off_t at = 0;;) {
    const ssize_t got = pread(file_.get(), chunk.data(), chunk.size(), at);
    if (got < 0) return failed(path_, "read");
    if (got == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    at += got;
  }
  std::vector<agent::JournalEntry> entries;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    if (end == std::string::npos) break;
    if (auto entry = agent::parse_line(std::string_view(text).substr(from, end - from)))
      entries.push_back(*std::move(entry));
    from = end + 1;
  }
  // What was told in full needs its intent no longer.
  std::set<std::string, std::less<>> told;
  for (const agent::JournalEntry& entry : entries)
    if (!entry.intent) told.insert(entry.action.uid);
  std::erase_if(entries, [&](const auto& entry) { return entry.intent && told.contains(entry.action.uid); });
  return entries;
}

}  // namespace spillway::host
