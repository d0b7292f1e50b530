#include "host/reaction/memory_brake.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::int64_t kMoveMin = mebibytes(1).count();

}  // namespace

Result<std::unique_ptr<MemoryBrake>> MemoryBrake::create(const CgroupDir& pods) {
  if (pods.version() == CgroupVersion::kV1)
    return make_error(ErrorCode::kNotFound, "cgroup version 1 has no memory.high");
  UniqueFd file(::openat(pods.fd(Controller::kMemory), "memory.high", O_WRONLY | O_CLOEXEC));
  if (!file) return errno_error(pods.file_path(Controller::kMemory) + "/memory.high", errno);
  return std::unique_ptr<MemoryBrake>(new MemoryBrake(std::move(file)));  // NOLINT: private constructor
}

MemoryBrake::MemoryBrake(UniqueFd file) : file_(std::move(file)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  write(kNoLimit);
  thread_ = std::thread([this] { run(); });
}

MemoryBrake::~MemoryBrake() {
  stop_.store(true);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  thread_.join();
  write(kNoLimit);
}

void MemoryBrake::set(std::optional<Bytes> limit) noexcept {
  const std::int64_t next = limit ? limit->count() : kNoLimit;
  const std::int64_t before = wanted_.load();
  const bool both = next != kNoLimit && before != kNoLimit;
  if (next == before || (both && next - before < kMoveMin && before - next < kMoveMin)) return;
  wanted_.store(next);
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void MemoryBrake::write(std::int64_t limit) const noexcept {
  std::array<char, 24> text;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::string_view value = "max";
  if (limit != kNoLimit) {
    const char* end = std::to_chars(text.data(), text.data() + text.size(), limit).ptr;
    value = {text.data(), static_cast<std::size_t>(end - text.data())};
  }
  static_cast<void>(!::pwrite(file_.get(), value.data(), value.size(), 0));
}

void MemoryBrake::run() noexcept {
  for (;;) {
    std::uint64_t times = 0;
    static_cast<void>(!::read(wake_.get(), &times, sizeof times));
    if (stop_.load()) return;
    write(wanted_.load());
  }
}

}  // namespace spillway::host
