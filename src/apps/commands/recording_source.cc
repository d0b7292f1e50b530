#include "apps/commands/recording_source.h"

#include "api/json/json.h"
#include "apps/process/recording.h"
#include "apps/view/byte_reader.h"
#include "apps/view/controller_client.h"
#include "apps/view/remote.h"
#include "base/file.h"
#include "host/files/recording_pages.h"
#include "host/files/recording_ring.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::apps {
namespace {

constexpr std::size_t kListBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kSegmentsMax = std::size_t{4} * host::RecordingPages::kSegmentsShownMax;
constexpr std::size_t kNameMax = 128;

class InDirectory final : public RecordingSource {
 public:
  explicit InDirectory(const std::string& directory) : ring_(recording_directory(directory)) {
    std::error_code unreadable;  // the next read reports the error
    if (!std::filesystem::is_directory(ring_, unreadable)) ring_ = directory;
  }

  Result<std::vector<std::string>> copies() override {
    std::error_code failed;
    if (!std::filesystem::is_directory(ring_, failed)) return errno_error(ring_, failed ? failed.value() : ENOTDIR);
    return host::recording_copies(ring_);
  }

  Result<std::vector<Segment>> segments(const std::string& copy) override {
    SPILLWAY_TRY(paths, host::recording_segments(folder_of(copy)));
    std::vector<Segment> found;
    for (std::string& path : paths) {
      std::error_code gone;
      const auto bytes = std::filesystem::file_size(path, gone);
      found.push_back({std::move(path), gone ? 0 : static_cast<std::int64_t>(bytes)});
    }
    if (found.empty()) return Error{ErrorCode::kNotFound, "there is no recording here", folder_of(copy)};
    return found;
  }

  Result<std::string> read(const std::string&, const Segment& segment) override {
    return host::read_recording_file(segment.name, host::RecordingPages::kSegmentAnswerMax);
  }

 private:
  std::string folder_of(const std::string& copy) const {
    return copy.empty() ? ring_ : host::recording_copy(ring_, copy);
  }

  std::string ring_;
};

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// True for a name that is safe in a path and on a terminal.
bool is_plain(const std::string& name) {
  return !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

class OverHttp final : public RecordingSource {
 public:
  /// `page`: path of the list. `whose`: "node n1".
  OverHttp(runtime::Loop& loop, wire::HttpEndpoint endpoint, std::string page, std::string whose)
      : reader_(loop, std::move(endpoint), static_cast<std::size_t>(host::RecordingPages::kSegmentAnswerMax)),
        page_(std::move(page)),
        whose_(std::move(whose)) {}

  Result<std::vector<std::string>> copies() override {
    SPILLWAY_TRY(list, read_list());
    std::vector<std::string> names;
    const api::Json::Array none;
    const api::Json* kept = list.find("kept");
    for (const api::Json& each : kept != nullptr && kept->if_array() != nullptr ? *kept->if_array() : none) {
      std::string name(each.string_at({"name"}));
      if (!is_plain(name)) return not_understood("is not a valid name of a copy");
      names.push_back(std::move(name));
    }
    return names;
  }

  Result<std::vector<Segment>> segments(const std::string& copy) override {
    SPILLWAY_TRY(list, read_list());
    const api::Json* from = copy.empty() ? &list : find_copy(list, copy);
    if (from == nullptr) return make_error(ErrorCode::kNotFound, "{} has kept no copy {}", whose_, copy);
    const api::Json* listed = from->find("segments");
    if (listed == nullptr || listed->if_array() == nullptr) return not_understood("lists no segments");
    if (listed->if_array()->size() > kSegmentsMax) return not_understood("lists too many segments");
    std::vector<Segment> found;
    for (const api::Json& each : *listed->if_array()) {
      std::string name(each.string_at({"name"}));
      const api::Json* bytes = each.find("bytes");
      const std::optional<std::int64_t> size = bytes == nullptr ? std::nullopt : bytes->if_int64();
      if (!is_number(name) || !size || *size < 0) return not_understood("lists a segment that cannot be");
      found.push_back({std::move(name), *size});
    }
    if (found.empty()) return make_error(ErrorCode::kNotFound, "{} has recorded nothing yet", whose_);
    return found;
  }

  Result<std::string> read(const std::string& copy, const Segment& segment) override {
    return reader_.get(page_ + (copy.empty() ? "/segments/" : "/kept/" + copy + "/") + segment.name);
  }

 private:
  static const api::Json* find_copy(const api::Json& list, const std::string& name) {
    const api::Json* kept = list.find("kept");
    if (kept == nullptr || kept->if_array() == nullptr) return nullptr;
    const auto found = std::ranges::find_if(*kept->if_array(),
                                            [&](const api::Json& each) { return each.string_at({"name"}) == name; });
    return found == kept->if_array()->end() ? nullptr : &*found;
  }

  Error not_understood(std::string_view why) const {
    return make_error(ErrorCode::kInternalError, "the recording of {} cannot be fetched: its list {}", whose_, why);
  }

  Result<api::Json> read_list() {
    const auto text = reader_.get(page_);
    if (!text && text.error().code == ErrorCode::kNotFound && text.error().message.contains("page not found")) {
      return make_error(ErrorCode::kNotFound,
                        "{} serves no recording: it is not Spillway, or of a version that only `--dir` reads", whose_);
    }
    if (!text) return text.error();
    if (text->size() > kListBytesMax) return not_understood("is too long");
    auto list = api::parse_json(*text);
    if (!list || !list->is_object()) return not_understood("is no JSON object");
    return list;
  }

  ByteReader reader_;
  std::string page_;
  std::string whose_;
};

Result<std::unique_ptr<RecordingSource>> of_controllers(runtime::Loop& loop, const cli::RecordCommand& command) {
  const std::string page(host::kRecordingPage);
  SPILLWAY_TRY(client, ControllerClient::create(loop, command.target));
  SPILLWAY_TRY(endpoint, client->find(page));
  return std::make_unique<OverHttp>(loop, std::move(endpoint), page, "the controller");
}

}  // namespace

std::unique_ptr<RecordingSource> recording_in(const std::string& directory) {
  return std::make_unique<InDirectory>(directory);
}

Result<std::unique_ptr<RecordingSource>> recording_from(runtime::Loop& loop, const cli::RecordCommand& command) {
  if (command.of == cli::RecordCommand::Of::kController) return of_controllers(loop, command);
  SPILLWAY_TRY(config, find_kubeconfig(command.target.api));
  SPILLWAY_TRY(endpoint, wire::make_endpoint(config, config.path, offered_protocols()));
  return std::make_unique<OverHttp>(
      loop, std::move(endpoint),
      "/api/v1/nodes/" + api::percent_encode(command.node) + "/proxy" + std::string(host::kRecordingPage),
      "node " + command.node);
}

}  // namespace spillway::apps
