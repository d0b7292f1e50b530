#include "wire/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{4} * 1024 * 1024;

class File {
 public:
  explicit File(int fd) : fd_(fd) {}

  ~File() { close(); }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }

  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Error system_error(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInternalError;
  return Error{code, std::generic_category().message(error), path};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return system_error(path, errno);
  std::string text;
  std::array<char, 16 * 1024> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  for (;;) {
    const ssize_t got = ::read(file.fd(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) return invalid(path, "larger than {} bytes", kFileBytesMax);
  }
}

Outcome write_private_file(const std::string& path, std::string_view text) {
  const std::string draft = path + ".new";
  File file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.fd() < 0) return system_error(path, errno);
  const bool written = ::fchmod(file.fd(), 0600) == 0 && write_all(file.fd(), text) && ::fsync(file.fd()) == 0 &&
                       file.close() && ::rename(draft.c_str(), path.c_str()) == 0;
  if (written) return {};
  const int error = errno;
  ::unlink(draft.c_str());
  return system_error(path, error);
}

Outcome make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return system_error(path, errno);
}

}  // namespace spillway::wire
