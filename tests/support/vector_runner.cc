// spillway_vectors DIR…: runs every vector file of folders laid out like vectors/<part>; the base name of a folder says
// which part. One line per file, the first failures below it. Exit 1 on a failure or an unknown file, 2 on bad usage.
#include "support/vectors.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace spillway::support {
namespace {

constexpr std::size_t kFailuresShown = 3;
constexpr std::size_t kTextShown = 600;

std::string shorten(std::string text) {
  if (text.size() > kTextShown) text = text.substr(0, kTextShown) + "…";
  return text;
}

struct Tally {
  std::size_t cases = 0;
  std::size_t failed = 0;
};

bool is_vector_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
}

void print_line(bool good, const std::string& name, std::string_view text) {
  const bool color = isatty(STDOUT_FILENO) == 1;
  fmt::print("{}{}{} {:<40} {}\n", color ? (good ? "\x1b[32m" : "\x1b[31m") : "", good ? "pass" : "FAIL",
             color ? "\x1b[0m" : "", name, text);
}

/// False if anything failed or the file is unknown.
bool run_file(const std::string& part, const std::filesystem::path& path, Tally& total) {
  std::string stem = path.filename().string();
  stem = stem.substr(0, stem.find('.'));
  const std::string name = part + "/" + stem;
  const auto check = vector_checks().find(name);
  if (check == vector_checks().end()) {
    print_line(false, name, "unknown vector file: no check is registered for it");
    return false;
  }
  const auto rows = load_rows(path);
  if (!rows) {
    print_line(false, name, rows.error().text());
    return false;
  }
  std::vector<std::string> failures;
  std::size_t failed = 0;
  for (const VectorRow& row : *rows) {
    const auto mismatch = check->second(row.document);
    if (!mismatch) continue;
    if (++failed > kFailuresShown) continue;
    const api::Json* in = row.document.find("in");
    failures.push_back(fmt::format("     {}:{} {}\n       in   {}\n       want {}\n       got  {}\n", row.file,
                                   row.line, row.name(), shorten(api::to_text(in != nullptr ? *in : row.document)),
                                   shorten(mismatch->want), shorten(mismatch->got)));
  }
  total.cases += rows->size();
  total.failed += failed;
  print_line(failed == 0, name,
             fmt::format("{:>5} cases {:>5} passed {:>5} failed", rows->size(), rows->size() - failed, failed));
  for (const std::string& failure : failures) fmt::print("{}", failure);
  return failed == 0;
}

int run(const std::vector<std::string>& folders) {
  Tally total;
  bool good = true;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(folder, error);
    if (error || !std::filesystem::is_directory(path)) {
      fmt::print(stderr, "spillway_vectors: {}: not a folder\n", folder);
      return 2;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (is_vector_file(entry.path())) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      fmt::print(stderr, "spillway_vectors: {}: no .jsonl file in it\n", folder);
      return 2;
    }
    for (const auto& file : files) good = run_file(path.filename().string(), file, total) && good;
  }
  fmt::print("{} passed, {} failed\n", total.cases - total.failed, total.failed);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace spillway::support

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: spillway_vectors DIR...\n");
    return 2;
  }
  return spillway::support::run(std::vector<std::string>(argv + 1, argv + argc));
}
