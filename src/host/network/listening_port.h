// Finds out if a program of this machine listens at a port. Thread: any; asks the kernel, and does not wait.
// Source: bind(2), socket(7), SO_REUSEADDR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::host {

/// True if a program listens at the port of the address, or of all addresses. `protocol`: TCP, UDP; false for others,
/// and if the kernel does not say.
bool is_listening(const std::string& address, std::string_view protocol, std::int32_t port);

}  // namespace spillway::host
