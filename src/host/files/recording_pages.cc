#include "host/files/recording_pages.h"

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

/// The request: without a segment for the list.
struct Asked {
  std::string copy;  // empty: the ring
  std::string segment;
};

api::Response answer_of(const api::Json& document, int status = 200) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}},
          .body = api::to_text(document) + "\n"};
}

api::Response refusal_of(const Error& error) {
  const api::Status status(error);
  return answer_of(api::to_json(status), status.code);
}

Error no_such_segment() {
  return make_error(ErrorCode::kNotFound, "the recording has no such segment: it may have been removed since the list");
}

std::optional<Asked> read_path(std::string_view path) {
  path.remove_prefix(kRecordingPage.size());
  if (path.empty()) return Asked();
  constexpr std::string_view kSegments = "/segments/";
  constexpr std::string_view kKept = "/kept/";
  if (path.ends_with('/')) return std::nullopt;
  if (path.starts_with(kSegments)) return Asked{{}, std::string(path.substr(kSegments.size()))};
  if (!path.starts_with(kKept)) return std::nullopt;
  path.remove_prefix(kKept.size());
  const std::size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
  return Asked{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

std::string name_of(const std::string& path) {
  return std::to_string(recording_segment_number(path).value_or(0));
}

/// The segments as JSON: only the latest ones, if there are too many.
api::Json segments_json(const std::string& directory) {
  api::Json list = api::Json::array();
  const auto paths = recording_segments(directory);
  if (!paths) return list;
  const std::size_t shown = std::min(paths->size(), RecordingPages::kSegmentsShownMax);
  for (std::size_t i = paths->size() - shown; i < paths->size(); ++i) {
    const std::string& path = (*paths)[i];
    struct stat found = {};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    list.if_array()->push_back(
        api::Json::object({{"name", name_of(path)}, {"bytes", static_cast<std::int64_t>(found.st_size)}}));
  }
  return list;
}

api::Response list_page(const std::string& directory) {
  api::Json kept = api::Json::array();
  for (const std::string& name : recording_copies(directory)) {
    kept.if_array()->push_back(
        api::Json::object({{"name", name}, {"segments", segments_json(recording_copy(directory, name))}}));
  }
  return answer_of(api::Json::object({{"segments", segments_json(directory)}, {"kept", std::move(kept)}}));
}

/// Only files that a list names are opened: no text of the path becomes part of a file's name.
std::optional<std::string> find_segment(const std::string& directory, const Asked& asked) {
  std::string from = directory;
  if (!asked.copy.empty()) {
    const std::vector<std::string> copies = recording_copies(directory);
    const auto copy = std::ranges::find(copies, asked.copy);
    if (copy == copies.end()) return std::nullopt;
    from = recording_copy(directory, *copy);
  }
  const auto paths = recording_segments(from);
  if (!paths) return std::nullopt;
  const auto path = std::ranges::find(*paths, asked.segment, name_of);
  return path == paths->end() ? std::nullopt : std::optional(*path);
}

api::Response segment(const std::string& directory, const Asked& asked) {
  const auto path = find_segment(directory, asked);
  if (!path) return refusal_of(no_such_segment());
  auto bytes = read_recording_file(*path, RecordingPages::kSegmentAnswerMax);
  if (!bytes) {
    const bool gone = bytes.error().code == ErrorCode::kNotFound;
    return refusal_of(gone ? no_such_segment() : make_error(ErrorCode::kInternalError, "{}", bytes.error().message));
  }
  return {.status = 200,
          .headers = {{"Content-Type", "application/octet-stream"}, {"X-Content-Type-Options", "nosniff"}},
          .body = *std::move(bytes)};
}

}  // namespace

/// Outlives the pages for as long as the thread reads for them. Its members are the loop's.
struct RecordingPages::Waiting {
  std::uint64_t last = 0;
  std::map<std::uint64_t, Answer> answers;
};

RecordingPages::RecordingPages(runtime::Loop& loop) : loop_(loop), waiting_(std::make_shared<Waiting>()) {}

/// Requests that still wait get no answer.
RecordingPages::~RecordingPages() {
  waiting_->answers.clear();
}

bool RecordingPages::serves(std::string_view path) {
  return path.starts_with(kRecordingPage) &&
         (path.size() == kRecordingPage.size() || path[kRecordingPage.size()] == '/');
}

void RecordingPages::get(std::string_view path, Answer answer) {
  const auto asked = read_path(path);
  if (!asked) return answer(refusal_of(make_error(ErrorCode::kNotFound, "there is no such page of a recording")));
  if (ring_ == nullptr) {
    return answer(refusal_of(make_error(ErrorCode::kServiceUnavailable,
                                        "nothing is recorded here: recording is switched off, has not begun, or its "
                                        "directory cannot be written")));
  }
  if (waiting_->answers.size() >= kWaitingMax) {
    return answer(refusal_of(
        make_error(ErrorCode::kTooManyRequests, "other clients are fetching the recording; try again later")));
  }
  const std::uint64_t id = ++waiting_->last;
  waiting_->answers.emplace(id, std::move(answer));
  ring_->flush([loop = &loop_, waiting = waiting_, id, asked = *asked, directory = ring_->directory()] {
    api::Response response =
        asked.segment.empty() && asked.copy.empty() ? list_page(directory) : segment(directory, asked);
    loop->post([waiting, id, response = std::move(response)]() mutable {
      const auto found = waiting->answers.extract(id);
      if (!found.empty()) found.mapped()(std::move(response));
    });
  });
}

}  // namespace spillway::host
