#include "host/kernel/own_memory.h"

#include "base/error.h"
#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>

namespace spillway::host {
namespace {

constexpr std::uint64_t kKilobyte = 1024;
constexpr std::uint64_t kGuardBytes = 4096;

/// The number behind the name of a line such as "VmRSS:   12 kB"; 0: the line does not exist.
std::uint64_t number_behind(std::string_view line, std::string_view name) {
  line.remove_prefix(name.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return parse_number(line.substr(0, line.find(' '))).value_or(0);
}

/// The header of a mapping ends with the name of its file, or with "[stack]".
std::string_view file_of(std::string_view header) {
  for (int fields = 0; fields < 5; ++fields) {
    header.remove_prefix(std::min(header.find(' '), header.size()));
    header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  }
  return header;
}

std::uint64_t thread_stack_bytes() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return 0;
  std::size_t bytes = 0;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  ::pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

void parse_status(std::string_view text, OwnMemory& memory) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("VmRSS:")) memory.resident = number_behind(line, "VmRSS:") * kKilobyte;
    if (line.starts_with("VmHWM:")) memory.resident_most = number_behind(line, "VmHWM:") * kKilobyte;
    if (line.starts_with("RssFile:")) memory.of_files = number_behind(line, "RssFile:") * kKilobyte;
    if (line.starts_with("Threads:")) memory.threads = number_behind(line, "Threads:");
  }
}

void parse_stacks(std::string_view smaps, std::uint64_t stack_bytes, OwnMemory& memory) {
  bool named = false;  // the mapping is the stack of the first thread
  bool nameless = false;
  bool is_stack = false;
  while (!smaps.empty()) {
    const std::string_view line = take_line(smaps);
    if (!line.empty() && (line[0] < 'A' || line[0] > 'Z')) {
      const std::string_view file = file_of(line);
      named = file == "[stack]";
      nameless = file.empty();
      is_stack = false;
    } else if (line.starts_with("Size:")) {
      const std::uint64_t size = number_behind(line, "Size:") * kKilobyte;
      is_stack = named || (nameless && (size == stack_bytes || size + kGuardBytes == stack_bytes));
      if (is_stack) ++memory.stack_count;
    } else if (is_stack && line.starts_with("Rss:")) {
      memory.stacks += number_behind(line, "Rss:") * kKilobyte;
    }
  }
}

OwnMemory read_own_memory() {
  OwnMemory memory;
  if (const auto status = read_file_at(AT_FDCWD, "/proc/self/status")) parse_status(*status, memory);
  if (const auto smaps = read_file_at(AT_FDCWD, "/proc/self/smaps")) {
    parse_stacks(*smaps, thread_stack_bytes(), memory);
  }
  const struct mallinfo2 allocator = ::mallinfo2();
  memory.allocator_used = allocator.uordblks + allocator.hblkhd;
  memory.allocator_free = allocator.fordblks;
  memory.allocator_mapped = allocator.hblkhd;
  return memory;
}

}  // namespace spillway::host
