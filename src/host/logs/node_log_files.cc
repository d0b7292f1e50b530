#include "host/logs/node_log_files.h"

#include "api/exchange/exchange.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

Error no_log(const std::string& place, int code) {
  const std::string why = code == ENOENT ? "no such file or directory" : std::generic_category().message(code);
  return make_error(ErrorCode::kNotFound, "stat {}: {}", place, why);
}

bool is_below(const fs::path& folder, const fs::path& path) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

/// A descriptor that only names the file: neither a device nor a pipe notices it.
UniqueFd name_beneath(const fs::path& folder, const fs::path& path) {
  const UniqueFd root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string relative = path.lexically_relative(folder).string();
  return UniqueFd(root ? static_cast<int>(::syscall(SYS_openat2, root.get(), relative.c_str(), &how, sizeof how)) : -1);
}

std::string escaped_for_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&#34;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

bool is_folder_entry(int folder, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat facts{};
  return ::fstatat(folder, entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
}

}  // namespace

Result<NodeLogFile> open_node_log(const std::string& folder, const std::string& below) {
  const std::string place = folder + fs::path("/" + below).lexically_normal().string();
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path real = error ? fs::path() : fs::canonical(place, error);
  if (error) return no_log(place, error.value());
  if (!is_below(root, real)) return no_log(place, ENOENT);
  const UniqueFd named = name_beneath(root, real);
  if (!named) return no_log(place, errno);
  struct stat facts{};
  if (::fstat(named.get(), &facts) != 0) return no_log(place, errno);
  NodeLogFile made;
  made.is_folder = S_ISDIR(facts.st_mode);
  if (!made.is_folder && !S_ISREG(facts.st_mode))
    return make_error(ErrorCode::kNotFound, "stat {}: not a regular file", place);
  if (!made.is_folder) made.size = static_cast<std::uint64_t>(facts.st_size);
  const int kind = made.is_folder ? O_DIRECTORY : O_NONBLOCK;
  made.opened.reset(::open(fmt::format("/proc/self/fd/{}", named.get()).c_str(), O_RDONLY | O_CLOEXEC | kind));
  if (!made.opened) return no_log(place, errno);
  return made;
}

Result<std::string> read_node_log(const NodeLogFile& file, std::uint64_t at, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count =
        ::pread(file.opened.get(), text.data() + got, text.size() - got, static_cast<off_t>(at + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return make_error(ErrorCode::kInternalError, "read: {}", std::generic_category().message(errno));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

Result<std::string> list_node_logs(const NodeLogFile& folder, const std::string& prefix) {
  UniqueFd own(::fcntl(folder.opened.get(), F_DUPFD_CLOEXEC, 0));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(own ? ::fdopendir(own.get()) : nullptr, ::closedir);
  if (entries == nullptr)
    return make_error(ErrorCode::kInternalError, "list: {}", std::generic_category().message(errno));
  const int listed = own.release();  // closed with `entries`
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
    std::string name(static_cast<const char*>(entry->d_name));
    if (name == "." || name == "..") continue;
    if (is_folder_entry(listed, *entry)) name += '/';
    names.push_back(std::move(name));
    if (names.size() > kListedFilesMax) break;
  }
  const bool more = names.size() > kListedFilesMax;
  if (more) names.pop_back();
  std::ranges::sort(names);
  std::string page = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  for (const std::string& name : names) {
    const bool is_folder = name.ends_with('/');
    const std::string link = api::percent_encode(is_folder ? name.substr(0, name.size() - 1) : name);
    page += fmt::format("<a href=\"{}{}{}\">{}</a>\n", prefix, link, is_folder ? "/" : "", escaped_for_html(name));
  }
  page += "</pre>\n";
  if (more) page += fmt::format("There are more than {} files: the others are not listed.\n", kListedFilesMax);
  return page;
}

}  // namespace spillway::host
