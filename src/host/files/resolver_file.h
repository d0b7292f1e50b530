// The file with the name servers of the machine's resolver: resolvConf of a KubeletConfiguration. Thread: any that may
// wait for the disk. Source: resolv.conf(5); spec "Pod lifecycle", 6.9.
#pragma once

#include "base/error.h"

#include <string>

namespace spillway::host {

/// The text of the file. An error has upstream's words, which pods are shown: "open /etc/resolv.conf: no such file or
/// directory".
Result<std::string> read_resolver_file(const std::string& path);

}  // namespace spillway::host
