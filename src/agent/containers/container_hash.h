// The hash of a container's definition: a running container with another hash has an old definition. Two agents that
// follow each other must compute the same. Thread: any (pure). Source: spec "Pod lifecycle", 13.3; vectors
// pod-lifecycle/container_hash.
#pragma once

#include <string>
#include <string_view>

namespace spillway::agent {

/// Lower-case hexadecimal digits, without leading zeros.
std::string container_hash(std::string_view name, std::string_view image);

}  // namespace spillway::agent
