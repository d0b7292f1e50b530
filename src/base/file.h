// Files read and written as a whole, and errors of system calls as values.
// Thread: any that may wait for the disk.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway {

/// The size limit of files that are read as a whole.
inline constexpr std::size_t kFileBytesMax = std::size_t{8} << 20;

/// The error of a failed system call: kForbidden for missing rights, kNotFound, kAlreadyExists, kConflict when
/// something is busy, kServiceUnavailable when a table or a disk is full, else kInternalError. `at` names file or call.
Error errno_error(std::string_view at, int error);

/// Reads the file from its current offset to its end; kInvalid: longer than kFileBytesMax. `at`: its name in errors.
Result<std::string> read_open_file(int fd, std::string_view at);
/// Errors name the path.
Result<std::string> read_file(const std::string& path);

/// Writes all of it, however many calls that takes.
Outcome write_all(int fd, std::string_view text, std::string_view at);

/// True if the name can be one component of a path: 1 to 253 bytes, neither "." nor "..", without '/' and NUL.
bool is_plain_name(std::string_view name);

/// Makes the directory and its parents, where they are missing. Errors name the path.
Outcome make_directories(const std::string& path);

/// A new name, or a rename, is on the disk only when its folder is. Errors name the folder.
Outcome sync_folder_of(const std::string& path);

/// Writes the file with mode 0600, complete or not at all, also across a loss of power: a reader sees the old text or
/// the new one. The new file is made exclusively, under a random name, and then takes the place of the old one; a link
/// is replaced, not followed.
Outcome replace_file(const std::string& path, std::string_view text);

}  // namespace spillway
