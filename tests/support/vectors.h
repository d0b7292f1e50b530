// Golden vectors: JSON Lines files under tests/vectors/<part>/, one check per file. A check is registered once and
// serves both CTest and `./dev vectors DIR`.
#pragma once

#include "api/json/json.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::support {

struct VectorRow {
  std::string file;
  int line = 0;
  api::Json document;

  /// The row's "name", or else its "id".
  std::string name() const;
};

/// The expected and the actual value, both as text; nullopt: the row passes.
struct Mismatch {
  std::string want;
  std::string got;
};

using VectorCheck = std::function<std::optional<Mismatch>(const api::Json& row)>;

/// All rows of a .jsonl or .jsonl.gz file. kNotFound, or kInvalid with file and line.
Result<std::vector<VectorRow>> load_rows(const std::filesystem::path& file);

/// "eviction/rank_memory" → its check.
std::map<std::string, VectorCheck, std::less<>>& vector_checks();

/// For namespace-scope registration: const bool kRankMemory = add_vector_check("eviction/rank_memory", check).
bool add_vector_check(std::string_view file, VectorCheck check);

/// Equal, or the mismatch of the two as text.
std::optional<Mismatch> compare(const api::Json& want, const api::Json& got);

}  // namespace spillway::support
