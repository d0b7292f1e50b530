// spillway_vectors [options] DIR|FILE…: runs vector files, or every one of a folder laid out like vectors/<part>; the
// name of the file's folder says which part. One line per file, the first failures below it. Exit 1 on a failure or an
// unknown file, 2 on bad usage.
#include "support/isolated_rows.h"
#include "support/vectors.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <vector>

namespace spillway::support {
namespace {

constexpr std::size_t kFailuresShown = 3;
constexpr std::size_t kTextShown = 600;
constexpr std::string_view kUsage =
    "usage: spillway_vectors [options] DIR|FILE...\n"
    "Runs vector files, or all of a folder. The name of a file's folder and its own name without endings say which "
    "check\n"
    "it is for: tests/vectors/api/create.jsonl.gz and /tmp/mine/api/create.jsonl are both for api/create.\n"
    "  --kind KIND,...  only rows of these kinds\n"
    "  --row ID,...     only rows of these names\n"
    "  --failures N     how many failures of a file are shown (default 3)\n"
    "  --whole          shown texts are not shortened\n"
    "  --help           this text\n"
    "Exit code: 0 all passed, 1 a failure or a file nobody has a check for, 2 bad usage.\n";

struct Options {
  std::vector<std::string> kinds;
  std::vector<std::string> rows;
  std::size_t failures = kFailuresShown;
  bool whole = false;
  bool help = false;
  std::vector<std::filesystem::path> paths;
};

struct Tally {
  std::size_t cases = 0;
  std::size_t failed = 0;
};

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) parts.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// True if the row is selected; of a kind such as "apps/v1 Deployment" the last word counts.
bool is_wanted(const VectorRow& row, const Options& options) {
  if (!options.rows.empty() && !contains(options.rows, row.name())) return false;
  if (options.kinds.empty()) return true;
  const std::string_view kind = row.document.string_at({"kind"});
  return contains(options.kinds, kind.substr(kind.rfind(' ') + 1));
}

std::string shorten(std::string text, const Options& options) {
  if (!options.whole && text.size() > kTextShown) text = text.substr(0, kTextShown) + "…";
  return text;
}

bool is_vector_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
}

void print_line(bool good, const std::string& name, std::string_view text) {
  const bool color = isatty(STDOUT_FILENO) == 1;
  fmt::print("{}{}{} {:<40} {}\n", color ? (good ? "\x1b[32m" : "\x1b[31m") : "", good ? "pass" : "FAIL",
             color ? "\x1b[0m" : "", name, text);
}

void print_failure(const VectorRow& row, const Mismatch& mismatch, const Options& options) {
  const api::Json* in = row.document.find("in");
  fmt::print("     {}:{} {}\n       in   {}\n       want {}\n       got  {}\n", row.file, row.line, row.name(),
             shorten(api::to_text(in != nullptr ? *in : row.document), options), shorten(mismatch.want, options),
             shorten(mismatch.got, options));
}

/// False if anything failed or the file is unknown.
bool run_file(const std::filesystem::path& path, const Options& options, Tally& total) {
  std::string stem = path.filename().string();
  stem = stem.substr(0, stem.find('.'));
  const std::string name = path.parent_path().filename().string() + "/" + stem;
  const auto check = vector_checks().find(name);
  if (check == vector_checks().end()) {
    print_line(false, name, "unknown vector file: no check is registered for it");
    return false;
  }
  auto rows = load_rows(path);
  if (!rows) {
    print_line(false, name, rows.error().text());
    return false;
  }
  std::erase_if(*rows, [&](const VectorRow& row) { return !is_wanted(row, options); });
  const std::vector<std::optional<Mismatch>> outcomes = check_rows(check->second, *rows);
  const auto passed = static_cast<std::size_t>(
      std::ranges::count_if(outcomes, [](const std::optional<Mismatch>& outcome) { return !outcome; }));
  const std::size_t failed = rows->size() - passed;
  total.cases += rows->size();
  total.failed += failed;
  print_line(failed == 0, name, fmt::format("{:>5} cases {:>5} passed {:>5} failed", rows->size(), passed, failed));
  std::size_t shown = 0;
  for (std::size_t i = 0; i < outcomes.size() && shown < options.failures; ++i) {
    if (!outcomes[i]) continue;
    print_failure((*rows)[i], *outcomes[i], options);
    ++shown;
  }
  return failed == 0;
}

/// The vector files that the path names, in order. Empty: it names none.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& named) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(named, error);
  if (error) return {};
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(path)) {
    if (is_vector_file(path)) files.push_back(path);
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (is_vector_file(entry.path())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

int run(const Options& options) {
  Tally total;
  bool good = true;
  for (const std::filesystem::path& path : options.paths) {
    const std::vector<std::filesystem::path> files = files_of(path);
    if (files.empty()) {
      fmt::print(stderr, "spillway_vectors: {}: neither a .jsonl or .jsonl.gz file nor a folder with one\n",
                 path.string());
      return 2;
    }
    for (const std::filesystem::path& file : files) good = run_file(file, options, total) && good;
  }
  fmt::print("{} passed, {} failed\n", total.cases - total.failed, total.failed);
  return good ? 0 : 1;
}

/// nullopt: not understood.
std::optional<Options> parse_options(std::span<const std::string_view> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const bool takes_value = argument == "--kind" || argument == "--row" || argument == "--failures";
    if (takes_value && ++i == arguments.size()) return std::nullopt;
    if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--whole") {
      options.whole = true;
    } else if (argument == "--kind") {
      options.kinds = split_list(arguments[i]);
    } else if (argument == "--row") {
      options.rows = split_list(arguments[i]);
    } else if (argument == "--failures") {
      const char* end = arguments[i].data() + arguments[i].size();
      const auto [stopped, ec] = std::from_chars(arguments[i].data(), end, options.failures);
      if (ec != std::errc{} || stopped != end) return std::nullopt;
    } else if (argument.starts_with('-')) {
      return std::nullopt;
    } else {
      options.paths.emplace_back(argument);
    }
  }
  if (options.paths.empty() && !options.help) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace spillway::support

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto options = spillway::support::parse_options(arguments);
  if (!options) {
    std::fputs(spillway::support::kUsage.data(), stderr);
    return 2;
  }
  if (options->help) {
    std::fputs(spillway::support::kUsage.data(), stdout);
    return 0;
  }
  return spillway::support::run(*options);
}
