#include "host/streams/port_listeners.h"

#include "base/file.h"
#include "base/unique_fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>

namespace spillway::host {
namespace {

constexpr std::string_view kListens = "0A";
/// Addresses as the kernel writes them, four bytes at a time in the machine's order: what a connection to the machine's
/// own loopback reaches.
constexpr std::array<std::string_view, 5> kReached = {"00000000", "0100007F", "00000000000000000000000000000000",
                                                      "00000000000000000000000001000000",
                                                      "0000000000000000FFFF00000100007F"};

struct Row {
  std::string_view address;
  std::uint16_t port = 0;
  std::string_view state;
  std::uint64_t inode = 0;
};

template <typename Number>
bool read_number(std::string_view text, int base, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// nullopt: not a row of a socket, such as the heading.
std::optional<Row> parse_row(std::string_view line) {
  std::array<std::string_view, 10> fields;
  for (std::string_view& field : fields) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    field = line.substr(0, line.find(' '));
    line.remove_prefix(field.size());
  }
  Row row;
  const std::size_t colon = fields[1].find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  row.address = fields[1].substr(0, colon);
  row.state = fields[3];
  if (!read_number(fields[1].substr(colon + 1), 16, row.port) || !read_number(fields[9], 10, row.inode))
    return std::nullopt;
  return row;
}

/// The part of the file that has the listening sockets.
std::string read_listeners(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::string line;
  while (text.size() < kFileBytesMax && std::getline(file, line)) {
    const auto row = parse_row(line);
    if (row && row->state != kListens) break;
    text += line;
    text += '\n';
  }
  return text;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Takes the sockets that the process holds out of `wanted`.
void strike_out(pid_t pid, std::string_view cgroup, std::set<std::uint64_t>& wanted, std::size_t& left) {
  // One descriptor for all reads: it stays bound to this process even if the process number is reused.
  const UniqueFd process(::open(fmt::format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process) return;
  const UniqueFd file(::openat(process.get(), "cgroup", O_RDONLY | O_CLOEXEC));
  const auto text = file ? read_open_file(file.get(), "cgroup") : Result<std::string>(errno_error("cgroup", errno));
  if (!text || !fmt::format("{}/", *text).contains(fmt::format("/{}/", cgroup))) return;
  UniqueFd folder(::openat(process.get(), "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return;
  const int fd = folder.get();
  const std::unique_ptr<DIR, CloseDirectory> entries(::fdopendir(folder.release()));
  if (!entries) return;
  std::array<char, 64> target{};
  while (const dirent* entry = ::readdir(entries.get())) {
    if (left == 0 || wanted.empty()) return;
    --left;
    const ssize_t size = ::readlinkat(fd, entry->d_name, target.data(), target.size());
    std::string_view name(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    std::uint64_t inode = 0;
    if (!name.starts_with("socket:[") || !name.ends_with(']')) continue;
    if (read_number(name.substr(8, name.size() - 9), 10, inode)) wanted.erase(inode);
  }
}

}  // namespace

std::set<std::uint64_t> parse_loopback_listeners(std::string_view table, std::uint16_t port) {
  std::set<std::uint64_t> inodes;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    const auto row = parse_row(line);
    if (!row) continue;
    if (row->state != kListens) break;
    if (row->port == port && std::ranges::find(kReached, row->address) != kReached.end()) inodes.insert(row->inode);
  }
  return inodes;
}

Outcome check_listeners(std::uint16_t port, const std::vector<pid_t>& processes, std::string_view cgroup) {
  std::set<std::uint64_t> wanted;
  for (const char* table : {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"})
    wanted.merge(parse_loopback_listeners(read_listeners(table), port));
  if (wanted.empty()) return make_error(ErrorCode::kNotFound, "connect to localhost:{}: connection refused", port);
  std::size_t left = kDescriptorsMax;
  for (std::size_t i = 0; i < std::min(processes.size(), kProcessesMax) && !wanted.empty(); ++i)
    strike_out(processes[i], cgroup, wanted, left);
  if (!wanted.empty())
    return make_error(ErrorCode::kNotFound, "no process of the pod listens on port {} of this machine", port);
  return {};
}

}  // namespace spillway::host
