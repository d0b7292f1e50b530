// Names of images: whether a text is one, what it is without tag and digest, and what is pulled for it.
// Thread: any (pure). Source: the reference grammar of the OCI distribution specification and of Docker's names; spec
// "Pod lifecycle", 8.1.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::agent {

struct ImageName {
  std::string repository;  // "docker.io/library/nginx"
  std::string to_pull;     // the text as given; ":latest" follows where it has neither tag nor digest
};

/// kInvalid, in upstream's words: "invalid reference format", …
Result<ImageName> parse_image_name(std::string_view text);

}  // namespace spillway::agent
