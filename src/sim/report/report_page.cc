#include "sim/report/report_page.h"

#include "api/text/base64.h"
#include "sim/report/page_files.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

namespace spillway::sim {
namespace {

std::string joined(const PageFile& file) {
  std::string text;
  for (const std::string_view piece : file.pieces) text += piece;
  return text;
}

int digit_of(char hex) {
  return hex <= '9' ? hex - '0' : hex - 'a' + 10;
}

/// 'sha256-…' of a Content-Security-Policy.
std::string source_of(const PageFile& file) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < file.sha256.size(); i += 2)
    bytes += static_cast<char>(digit_of(file.sha256[i]) * 16 + digit_of(file.sha256[i + 1]));
  return fmt::format("'sha256-{}'", api::encode_base64(bytes));
}

std::string policy_text() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
      source_of(kPageScript), source_of(kPageStyle));
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char each : text) {
    switch (each) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += each;
    }
  }
  return safe;
}

}  // namespace

std::string report_page(const std::string& title, std::span<const RunHistory> runs, const Explain& explain) {
  const std::string frame = joined(kPageFrame);
  std::string page;
  std::size_t from = 0;
  const auto put = [&](std::string_view place, const std::string& text) {
    const std::size_t at = frame.find(place, from);
    page += frame.substr(from, at - from);
    page += text;
    from = at + place.size();
  };
  put("{{policy}}", policy_text());
  put("{{title}}", escaped(title));
  put("{{style}}", joined(kPageStyle));
  put("{{data}}", page_data(runs, explain));
  put("{{script}}", joined(kPageScript));
  return page + frame.substr(from);
}

}  // namespace spillway::sim
