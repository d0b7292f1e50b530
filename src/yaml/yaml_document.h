// A YAML file as a JSON document with the place of every value. YAML's typing traps are answered here: duplicate keys,
// several documents, octal numbers and merge keys are errors; yes/no/on/off are booleans as in YAML 1.1, 1e3 is a
// number, and the spelling of every plain scalar is kept for fields that want a string. Thread: any. Bounds: 1 MiB of
// text, 20,000 values with aliases expanded, 64 levels. Source: YAML 1.1 and 1.2; Kubernetes docs, "Set Kubelet
// Parameters Via A Configuration File".
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

namespace spillway::yaml {

struct Origin {
  int line = 0;      // from 1
  int column = 0;    // from 1
  std::string text;  // a plain scalar as written; empty for anything else
};

struct Document {
  api::Json value;
  std::map<std::string, Origin, std::less<>> origins;  // "evictionHard[memory.available]", "clusterDNS[0]"
};

/// Parses a document. kInvalid: "FILE:LINE" and the mistake.
Result<Document> parse(const std::string& file, const std::string& text);
/// kNotFound or kInvalid: the file cannot be read or is too large; else as parse.
Result<Document> read_file(const std::string& file);

/// The same of a stream, to its end. `file` is what errors call it.
Result<Document> read_stream(std::istream& stream, const std::string& file);

/// Block style, members in order; strings that YAML could take for something else are quoted.
std::string to_text(const api::Json& value);

}  // namespace spillway::yaml
