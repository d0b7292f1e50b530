#include "host/reaction/psi.h"

#include "host/kernel/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace spillway::host {
namespace {

constexpr std::array<std::pair<PsiWindow, std::string_view>, 2> kTriggers = {
    {{PsiWindow::kHalfSecond, "some 50000 500000"}, {PsiWindow::kTwoSeconds, "some 100000 2000000"}}};

/// "12.34" → 1234.
std::optional<std::int32_t> parse_hundredths(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos || text.size() - point != 3) return std::nullopt;
  const std::optional<std::uint64_t> whole = parse_number(text.substr(0, point));
  const std::optional<std::uint64_t> rest = parse_number(text.substr(point + 1));
  if (!whole || !rest || *whole > 100) return std::nullopt;
  return static_cast<std::int32_t>(*whole * 100 + *rest);
}

/// avg10=0.00 avg60=0.00 avg300=0.00 total=0
std::optional<PsiLine> parse_psi_line(std::string_view text) {
  PsiLine line;
  const std::array<std::pair<std::string_view, std::int32_t*>, 3> averages = {
      {{"avg10=", &line.avg10}, {"avg60=", &line.avg60}, {"avg300=", &line.avg300}}};
  for (const auto& [key, slot] : averages) {
    const std::size_t blank = text.find(' ');
    if (!text.starts_with(key) || blank == std::string_view::npos) return std::nullopt;
    const std::optional<std::int32_t> value = parse_hundredths(text.substr(key.size(), blank - key.size()));
    if (!value) return std::nullopt;
    *slot = *value;
    text.remove_prefix(blank + 1);
  }
  if (!text.starts_with("total=")) return std::nullopt;
  const std::optional<std::uint64_t> total = parse_number(text.substr(6));
  if (!total) return std::nullopt;
  line.total_micros = *total;
  return line;
}

}  // namespace

api::PsiStats to_psi_stats(const Psi& psi) {
  const auto shares = [](const PsiLine& line) {
    return api::PsiShares{
        .avg10 = line.avg10, .avg60 = line.avg60, .avg300 = line.avg300, .total_nanos = line.total_micros * 1000};
  };
  return {.full = shares(psi.full.value_or(PsiLine{})), .some = shares(psi.some)};
}

Result<Psi> parse_psi(std::string_view text) {
  std::optional<PsiLine> some;
  Psi psi;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const bool is_some = line.starts_with("some ");
    if (!is_some && !line.starts_with("full ")) continue;
    const std::optional<PsiLine> parsed = parse_psi_line(line.substr(5));
    if (!parsed) return invalid("pressure", "malformed line \"{}\"", line.substr(0, 96));
    (is_some ? some : psi.full) = parsed;
  }
  if (!some) return invalid("pressure", "no line \"some\"");
  psi.some = *some;
  return psi;
}

PsiTrigger open_psi_trigger(int directory, const std::string& file) {
  for (const auto& [window, text] : kTriggers) {
    UniqueFd fd(::openat(directory, file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return {};
    // The kernel requires the terminating zero.
    if (::write(fd.get(), text.data(), text.size() + 1) > 0) return {std::move(fd), window};
  }
  return {};
}

}  // namespace spillway::host
