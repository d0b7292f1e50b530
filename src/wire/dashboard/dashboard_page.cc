#include "wire/dashboard/dashboard_page.h"

#include "api/json/json.h"
#include "wire/dashboard/page_files.h"

#include <utility>

namespace spillway::wire {

namespace {

constexpr const char* kNotBuilt =
    "<!doctype html><html lang=\"en\"><title>Spillway</title><h1>Built without the dashboard</h1>"
    "<p>npm was missing when this program was built. Install it and repeat <code>./dev build "
    "release</code>.</p></html>\n";

std::string text_of(const DashboardFile& file) {
  std::string text;
  for (const std::string_view piece : file.pieces) text += piece;
  return text;
}

/// The page with links to files below `root`.
std::string rooted(std::string frame, const std::string& root) {
  constexpr std::string_view kLink = "=\"app.";
  for (std::size_t at = frame.find(kLink); at != std::string::npos;
       at = frame.find(kLink, at + kLink.size() + root.size()))
    frame.insert(at + 2, root);
  return frame;
}

api::Response file_response(const char* type, std::string body) {
  return {.status = 200,
          .headers = {{"Content-Type", type},
                      {"Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Cache-Control", "no-store"}},
          .body = std::move(body),
          .document = {}};
}

}  // namespace

std::optional<api::Response> dashboard_page(std::string_view path, const DashboardDoor& door) {
  if (path == "/ui" && door.root.empty()) {
    auto moved = file_response("text/plain; charset=utf-8", "see ui/\n");
    moved.status = 307;
    moved.headers.emplace_back("Location", "ui/");
    return moved;
  }
  if (path == "/ui" || path == "/ui/" || path == "/ui/index.html") {
    const std::string frame = rooted(text_of(kDashboardFrame), door.root);
    return file_response("text/html; charset=utf-8", frame.empty() ? kNotBuilt : frame);
  }
  if (path == "/ui/app.js") return file_response("text/javascript; charset=utf-8", text_of(kDashboardScript));
  if (path == "/ui/app.css") return file_response("text/css; charset=utf-8", text_of(kDashboardStyle));
  if (path == "/ui/door.json") {
    const api::Json document = api::Json::object(
        {{"version", door.version}, {"through", door.through}, {"server", door.server}, {"whatIf", door.what_if}});
    return file_response("application/json", api::to_text(document) + "\n");
  }
  return std::nullopt;
}

}  // namespace spillway::wire
