#include "host/kernel/resident_memory.h"

#include "base/error.h"
#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace spillway::host {
namespace {

constexpr int kLockFlags = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;

bool may_lock_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return true;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  return ::syscall(SYS_capget, &header, data.data()) == 0 && (data[0].effective >> CAP_IPC_LOCK & 1U) != 0;
}

std::optional<std::uintptr_t> parse_address(std::string_view text) {
  std::uintptr_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The next word of a line, which loses it and the blanks around it.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return word;
}

/// "7f00-7f10 r-xp 00000000 fe:00 4711  /usr/lib/libc.so.6"; nullopt: not one to be given back, or no such line.
std::optional<MemoryRange> parse_mapping(std::string_view line, std::string_view program) {
  const std::string_view span = take_word(line);
  const std::size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = parse_address(span.substr(0, dash));
  const auto end = parse_address(span.substr(dash + 1));
  const std::string_view rights = take_word(line);
  take_word(line);  // offset
  take_word(line);  // device
  take_word(line);  // inode
  if (!begin || !end || *end <= *begin || rights.size() != 4 || rights[1] != '-' || rights[3] != 'p') {
    return std::nullopt;
  }
  // Only ranges that stay mapped from start to end: an address that was reused in between would lose its content.
  if (line != program && (!line.starts_with('/') || line.find(".so") == std::string_view::npos)) return std::nullopt;
  return MemoryRange{*begin, *end - *begin};
}

bool begins_mapping(std::string_view line) {
  return !line.empty() && (line[0] < 'A' || line[0] > 'Z');
}

}  // namespace

MemoryLock protect_process() {
  ignored(write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "-999"), "needs CAP_SYS_RESOURCE");
  // Under a limit, locking future mappings would make later mappings fail.
  if (!may_lock_memory()) return MemoryLock::kNotAllowed;
  return ::mlockall(kLockFlags) == 0 ? MemoryLock::kLocked : MemoryLock::kNotAllowed;
}

void give_back_start_up_pages() {
  std::array<char, 4096> program;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t length = ::readlink("/proc/self/exe", program.data(), program.size());
  const Result<std::string> smaps = read_file_at(AT_FDCWD, "/proc/self/smaps");
  if (length <= 0 || !smaps) return;
  const bool locked = may_lock_memory();
  if (locked) ::munlockall();
  for (const MemoryRange& range : clean_code_ranges(*smaps, {program.data(), static_cast<std::size_t>(length)})) {
    ::madvise(reinterpret_cast<void*>(range.begin), range.size, MADV_DONTNEED);  // NOLINT: an address of the kernel's
  }
  if (locked) ::mlockall(kLockFlags);
}

std::vector<MemoryRange> clean_code_ranges(std::string_view smaps, std::string_view program) {
  std::vector<MemoryRange> ranges;
  std::optional<MemoryRange> current;
  while (!smaps.empty()) {
    std::string_view line = take_line(smaps);
    if (begins_mapping(line)) {
      current = parse_mapping(line, program);
      continue;
    }
    if (!current || take_word(line) != "Anonymous:") continue;
    if (take_word(line) == "0") ranges.push_back(*current);
    current.reset();
  }
  return ranges;
}

}  // namespace spillway::host
