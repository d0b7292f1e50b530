#include "support/vectors.h"

#include <zlib.h>

#include <array>

namespace spillway::support {
namespace {

Result<std::string> read_text(const std::filesystem::path& file) {
  gzFile in = gzopen(file.c_str(), "rb");  // reads files without compression as well
  if (in == nullptr) return make_error(ErrorCode::kNotFound, "{}: cannot be opened", file.string());
  std::string text;
  std::array<char, 65536> chunk;
  int got = 0;
  while ((got = gzread(in, chunk.data(), chunk.size())) > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
  gzclose(in);
  if (got < 0) return invalid(file.string(), "not a readable gzip or text file");
  return text;
}

}  // namespace

std::string VectorRow::name() const {
  const std::string_view name = document.string_at({"name"});
  return std::string(name.empty() ? document.string_at({"id"}) : name);
}

Result<std::vector<VectorRow>> load_rows(const std::filesystem::path& file) {
  SPILLWAY_TRY(text, read_text(file));
  std::vector<VectorRow> rows;
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view row = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (row.empty()) continue;
    auto document = api::parse_json(row);
    if (!document) return invalid(fmt::format("{}:{}", file.string(), line), "{}", document.error().message);
    rows.push_back({file.string(), line, *std::move(document)});
  }
  return rows;
}

std::map<std::string, VectorCheck, std::less<>>& vector_checks() {
  static std::map<std::string, VectorCheck, std::less<>> checks;
  return checks;
}

bool add_vector_check(std::string_view file, VectorCheck check) {
  return vector_checks().emplace(std::string(file), std::move(check)).second;
}

std::optional<Mismatch> compare(const api::Json& want, const api::Json& got) {
  if (want == got) return std::nullopt;
  return Mismatch{api::to_text(want), api::to_text(got)};
}

}  // namespace spillway::support
