// The program that is a container's supervisor: a part of this binary, handed to the kernel as a file in memory, so
// that it is always of this binary's version and needs no file on the machine. Thread: any. Source: memfd_create(2),
// execveat(2).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

namespace spillway::host {

/// A descriptor of the program for execution. The file cannot be written any more.
Result<UniqueFd> open_supervisor_program();

/// An error if this machine does not let a process take over another's descriptors; it names the refused call.
Outcome check_supervision();

}  // namespace spillway::host
