#include "host/supervisor/supervisor_program.h"

#include "base/file.h"
#include "host/kernel/pidfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

// The file that the build has made, as it is.
asm(R"(
  .pushsection .rodata
  .global spillway_supervisor_begin
  .global spillway_supervisor_end
  .balign 16
spillway_supervisor_begin:
  .incbin ")" SPILLWAY_SUPERVISOR R"("
spillway_supervisor_end:
  .byte 0
  .popsection
)");

extern "C" {
extern const char spillway_supervisor_begin[];
extern const char spillway_supervisor_end[];
}

namespace spillway::host {
namespace {

constexpr unsigned kMemfdExec = 0x10;  // MFD_EXEC; older headers and kernels lack it

UniqueFd make_memory(const char* name, unsigned flags) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | flags | kMemfdExec));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, MFD_CLOEXEC | flags));
  return fd;
}

}  // namespace

Result<UniqueFd> open_supervisor_program() {
  UniqueFd fd = make_memory("spillway-supervisor", MFD_ALLOW_SEALING);
  if (!fd) return errno_error("memfd_create", errno);
  const std::string_view text(spillway_supervisor_begin,
                              static_cast<std::size_t>(spillway_supervisor_end - spillway_supervisor_begin));
  SPILLWAY_TRY_VOID(write_all(fd.get(), text, "supervisor program"));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return errno_error("seals of the supervisor program", errno);
  return fd;
}

Outcome check_supervision() {
  const UniqueFd own = try_open_pidfd(::getpid());
  if (!own) return errno_error("pidfd_open", errno);
  const UniqueFd same(static_cast<int>(::syscall(SYS_pidfd_getfd, own.get(), own.get(), 0U)));
  if (!same) return errno_error("pidfd_getfd", errno);
  SPILLWAY_TRY(program, open_supervisor_program());
  return {};
}

}  // namespace spillway::host
