#include "host/logs/gzip_file.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace spillway::host {
namespace {

constexpr std::size_t kGzipBlockBytes = std::size_t{64} * 1024;

}  // namespace

Outcome gzip_file(const std::string& path, mode_t mode, const std::function<bool()>& may_continue) {
  const std::string unfinished = fmt::format("{}{}", path, kUnfinishedEnd);
  const UniqueFd from(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!from) return errno_error(path, errno);
  UniqueFd to(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!to) return errno_error(unfinished, errno);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> packed(::gzdopen(to.get(), "wb1"), ::gzclose);
  if (!packed) return errno_error(unfinished, ENOMEM);
  static_cast<void>(to.release());          // closed by gzclose()
  std::array<char, kGzipBlockBytes> block;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    if (may_continue && !may_continue()) {
      ::unlink(unfinished.c_str());
      return {};
    }
    const ssize_t got = ::read(from.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    if (::gzwrite(packed.get(), block.data(), static_cast<unsigned>(got)) != got) return errno_error(unfinished, EIO);
  }
  if (::gzflush(packed.get(), Z_FINISH) != Z_OK) return errno_error(unfinished, EIO);
  if (::rename(unfinished.c_str(), fmt::format("{}{}", path, kGzipEnd).c_str()) != 0)
    return errno_error(unfinished, errno);
  if (::unlink(path.c_str()) != 0) return errno_error(path, errno);
  return {};
}

}  // namespace spillway::host
