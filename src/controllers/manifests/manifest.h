// An object that a file defines.
#pragma once

#include "api/json/json.h"

#include <string>

namespace spillway::controllers {

struct Manifest {
  std::string place;  // for messages: "web.yaml, document 2"
  api::Json object;   // has apiVersion, kind and metadata.name
};

}  // namespace spillway::controllers
