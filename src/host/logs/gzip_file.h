// A file made into a compressed one beside it.
// Thread: any that may wait for the disk. Source: RFC 1952.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace spillway::host {

inline constexpr std::string_view kGzipEnd = ".gz";
/// The end of an incomplete file's name.
inline constexpr std::string_view kUnfinishedEnd = ".tmp";

/// Compresses PATH to PATH.gz of mode `mode`, at the fastest level; PATH.tmp is in between. `may_continue` is called
/// now and then: false stops and keeps PATH, which is no error. Empty: never stops.
Outcome gzip_file(const std::string& path, mode_t mode, const std::function<bool()>& may_continue = {});

}  // namespace spillway::host
