#include "host/containerd/tar_archive.h"

#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::uint64_t kTarRecord = 512;
constexpr std::uint64_t kLongNameMax = 64 << 10;

/// The text of a header field up to its first NUL.
std::string_view text_at(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

/// Octal digits, or GNU's binary number, which begins with the highest bit.
std::optional<std::uint64_t> number_at(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view field = header.substr(at, size);
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
    for (const char c : field.substr(size - sizeof value)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }
  std::string_view digits = text_at(header, at, size);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.empty()) return 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool has_right_checksum(std::string_view header) {
  constexpr std::size_t kAt = 148;
  constexpr std::size_t kBytes = 8;
  std::uint64_t sum = kBytes * ' ';
  for (std::size_t i = 0; i < header.size(); ++i)
    if (i < kAt || i >= kAt + kBytes) sum += static_cast<unsigned char>(header[i]);
  return number_at(header, kAt, kBytes) == sum;
}

std::string bare_name(std::string name) {
  while (name.starts_with("./")) name.erase(0, 2);
  return name;
}

/// The "path" of pax records: "LENGTH KEY=VALUE\n" each; empty: there is none.
std::string path_in_pax(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto parsed = std::from_chars(records.data(), records.data() + records.size(), length);
    if (parsed.ec != std::errc() || length == 0 || length > records.size()) return {};
    std::string_view record = records.substr(0, length);
    record.remove_prefix(std::min(record.find(' ') + 1, record.size()));
    if (record.starts_with("path=") && record.ends_with('\n')) return std::string(record.substr(5, record.size() - 6));
    records.remove_prefix(length);
  }
  return {};
}

}  // namespace

Result<TarArchive> TarArchive::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is refused, not waited for
  if (!fd) return errno_error(path, errno);
  TarArchive archive(std::move(fd), path);
  SPILLWAY_TRY_VOID(archive.index());
  return archive;
}

Result<std::string> TarArchive::read_at(std::uint64_t offset, std::size_t bytes) const {
  std::string buffer(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(fd_.get(), buffer.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path_, errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  buffer.resize(got);
  return buffer;
}

Outcome TarArchive::index() {
  std::uint64_t at = 0;
  std::string long_name;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
  if (end < 0) return invalid(path_, "expected a file, not a pipe");
  for (;;) {
    SPILLWAY_TRY(header, read_at(at, kTarRecord));
    const bool is_end = header.empty() || std::ranges::all_of(header, [](char c) { return c == '\0'; });
    if (is_end && at > 0) return {};
    if (at == 0 && (header.starts_with("\x1f\x8b") || header.starts_with("\x28\xb5\x2f\xfd")))
      return invalid(path_, "it is compressed; uncompress it first (gunzip, unzstd)");
    const auto size = header.size() == kTarRecord ? number_at(header, 124, 12) : std::nullopt;
    if (!size || !has_right_checksum(header) || *size > static_cast<std::uint64_t>(end))
      return invalid(path_, "expected a tar archive; byte {} begins no entry", at);
    const std::uint64_t body = at + kTarRecord;
    if (body + *size > static_cast<std::uint64_t>(end)) return invalid(path_, "it ends within an entry");
    const char type = header[156];
    if (type == 'L' || type == 'x') {
      if (*size > kLongNameMax) return invalid(path_, "a name of {} bytes is too long", *size);
      SPILLWAY_TRY(text, read_at(body, *size));
      long_name = type == 'L' ? std::string(text_at(text, 0, text.size())) : path_in_pax(text);
    } else {
      std::string name = std::exchange(long_name, {});
      if (name.empty()) {
        const std::string_view prefix = text_at(header, 345, 155);
        const bool has_prefix = header.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty();
        name =
            has_prefix ? fmt::format("{}/{}", prefix, text_at(header, 0, 100)) : std::string(text_at(header, 0, 100));
      }
      if (type == '0' || type == '\0') {
        if (files_.size() == kEntriesMax) return invalid(path_, "it has more than {} files", kEntriesMax);
        name = bare_name(std::move(name));
        files_[name] = *size;
        offsets_[name] = body;
      }
    }
    at = body + (*size + kTarRecord - 1) / kTarRecord * kTarRecord;
  }
}

Result<std::string> TarArchive::read(const std::string& name, std::uint64_t offset, std::size_t bytes_max) const {
  const auto size = files_.find(name);
  if (size == files_.end()) return Error{ErrorCode::kNotFound, "it is missing from the archive", name};
  const std::uint64_t left = size->second - std::min(offset, size->second);
  return read_at(offsets_.at(name) + offset, static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes_max)));
}

Result<std::string> TarArchive::read_text(const std::string& name) const {
  const auto size = files_.find(name);
  if (size != files_.end() && size->second > kTextBytesMax)
    return invalid(name, "expected at most {} bytes, got {}", kTextBytesMax, size->second);
  return read(name, 0, kTextBytesMax);
}

}  // namespace spillway::host
