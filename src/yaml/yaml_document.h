// A YAML file as a JSON document with the place of every value. YAML's typing traps are answered here: duplicate keys,
// several documents, octal numbers and merge keys are errors; yes/no/on/off are booleans as in YAML 1.1, 1e3 is a
// number, and the spelling of every plain scalar is kept for fields that want a string. Thread: any. Bounds: 4 MiB of
// text; with aliases expanded 250,000 values and 16 MiB of keys and scalars; 1,000 aliases, 64 levels, keys of 4,096
// bytes. What is beyond is refused where it begins; time and memory are linear in what was read until then. Source:
// YAML 1.1 and 1.2; Kubernetes docs, "Set Kubelet Parameters Via A Configuration File".
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::yaml {

struct Origin {
  int line = 0;      // from 1
  int column = 0;    // from 1
  std::string text;  // a plain scalar as written; empty for anything else
};

/// The places of the values of a document, each under its own name below the value that holds it: no path is kept.
class Origins {
 public:
  using Id = std::size_t;

  /// The document itself.
  static constexpr Id kRoot = 0;

  /// The place by path: "evictionHard[memory.available]", "clusterDNS[0]"; "" is the document. nullptr: no such value.
  const Origin* find(std::string_view path) const;

  /// Throws std::out_of_range where nothing is.
  const Origin& at(std::string_view path) const;

  /// The id of that member or element, added if it does not exist.
  Id add(Id parent, std::string_view name);
  std::optional<Id> child(Id parent, std::string_view name) const;

  Origin& operator[](Id id) { return origins_[id]; }

  const Origin& operator[](Id id) const { return origins_[id]; }

  std::size_t size() const { return origins_.size(); }

 private:
  using Key = std::pair<Id, std::string>;
  using View = std::pair<Id, std::string_view>;

  struct Before {
    using is_transparent = void;

    static View view(const Key& key) { return {key.first, key.second}; }

    static View view(const View& key) { return key; }

    bool operator()(const auto& a, const auto& b) const { return view(a) < view(b); }
  };

  const Origin* find_below(Id parent, std::string_view rest) const;

  std::vector<Origin> origins_ = std::vector<Origin>(1);
  std::map<Key, Id, Before> children_;
};

/// A key that occurs twice in its mapping.
struct RepeatedKey {
  int line = 0;
  int first_line = 0;
  std::string key;
};

struct Document {
  api::Json value;
  Origins origins;
  std::vector<RepeatedKey> repeated = {};  // with RepeatedKeys::kLastCounts
};

/// A key that is there twice is an error, or its last value counts, as decoders of JSON have it.
enum class RepeatedKeys { kRefused, kLastCounts };

/// The meaning of a number with a leading zero: YAML 1.1 reads an octal one, YAML 1.2 a decimal one.
enum class LeadingZero {
  kRefused,  // an error, for files whose author must choose one
  kOctal,    // for bodies of requests, as clients of other API servers mean it: 0644 is 420
};

/// Parses a document. kInvalid: "FILE:LINE" and the mistake.
Result<Document> parse(const std::string& file, const std::string& text,
                       LeadingZero leading_zero = LeadingZero::kRefused);
/// All documents of a text; none in an empty text. Errors as parse; more than `documents_max` are one, too.
inline constexpr std::size_t kDocumentsMax = 64;
Result<std::vector<Document>> parse_documents(const std::string& file, const std::string& text, RepeatedKeys repeated,
                                              LeadingZero leading_zero = LeadingZero::kRefused,
                                              std::size_t documents_max = kDocumentsMax);
/// kNotFound or kInvalid: the file cannot be read or is too large.
Result<std::string> read_text(std::istream& stream, const std::string& file);
/// kNotFound or kInvalid: the file cannot be read or is too large; else as parse.
Result<Document> read_file(const std::string& file);

/// Reads a stream to its end. `file`: its name in errors.
Result<Document> read_stream(std::istream& stream, const std::string& file);

/// Block style, members in order; strings that YAML could take for something else are quoted.
std::string to_text(const api::Json& value);

}  // namespace spillway::yaml
