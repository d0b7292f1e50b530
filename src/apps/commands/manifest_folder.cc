#include "apps/commands/manifest_folder.h"

#include "base/file.h"
#include "base/unique_fd.h"
#include "yaml/yaml_document.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace spillway::apps {
namespace {

using controllers::Manifest;

constexpr std::size_t kFilesMax = 1'000;
constexpr std::size_t kFileDocumentsMax = 1'000;
constexpr std::size_t kObjectsMax = 10'000;

/// Adds the object, or those of a List. kInvalid: a member that identifies it is missing.
Outcome add_object(const std::string& place, api::Json object, std::vector<Manifest>& found) {
  if (!object.is_object()) return invalid(place, "expected an object with apiVersion and kind");
  const std::string_view kind = object.string_at({"kind"});
  for (const std::string_view member : {"apiVersion", "kind"}) {
    if (object.string_at({member}).empty()) return invalid(place, "{} is missing", member);
  }
  api::Json* const items = object.find("items");
  if (kind.ends_with("List") && items != nullptr && items->is_array()) {
    for (api::Json& item : *items->if_array()) SPILLWAY_TRY_VOID(add_object(place, std::move(item), found));
    return {};
  }
  if (object.string_at({"metadata", "name"}).empty())
    return invalid(place, "metadata.name of this {} is missing", kind);
  if (found.size() == kObjectsMax) return invalid(place, "more than {} objects", kObjectsMax);
  found.push_back({place, std::move(object)});
  return {};
}

/// The user who called sudo, whose files root may trust as root's own; nullopt: not called by sudo.
std::optional<uid_t> user_of_sudo() {
  const char* const text = ::geteuid() == 0 ? std::getenv("SUDO_UID") : nullptr;
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  uid_t user = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), user);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return user;
}

/// kForbidden: another user can write what is applied with all rights.
Outcome check_writers(const std::string& at, const struct stat& status) {
  const bool is_trusted =
      status.st_uid == 0 || status.st_uid == ::geteuid() || status.st_uid == user_of_sudo().value_or(0);
  if (!is_trusted) {
    return Error{ErrorCode::kForbidden,
                 fmt::format("it belongs to user {}, and its objects are applied with all rights (chown {})",
                             status.st_uid, ::geteuid()),
                 at};
  }
  if ((status.st_mode & S_IWOTH) == 0) return {};
  return Error{ErrorCode::kForbidden,
               "every user of this machine can write there, and its objects are applied with all rights (chmod o-w)",
               at};
}

/// The text of a regular file. It may be replaced by anything at any time, so all that counts is asked of the open
/// file, and opening a pipe waits for no writer.
Result<std::string> read_manifest_file(const std::string& path, const std::string& name) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return errno_error(name, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return errno_error(name, errno);
  if (!S_ISREG(status.st_mode)) return invalid(name, "expected a regular file");
  SPILLWAY_TRY_VOID(check_writers(name, status));
  SPILLWAY_TRY(text, read_open_file(fd.get(), name));
  std::istringstream stream(std::move(text));
  return yaml::read_text(stream, name);
}

}  // namespace

Outcome check_manifest_folder(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code failed;
  const std::filesystem::directory_iterator opened(folder, failed);
  if (failed) return invalid(fmt::format("--manifests {}", folder), "expected a folder: {}", failed.message());
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0) return errno_error(folder, errno);
  if (const Outcome checked = check_writers(fmt::format("--manifests {}", folder), status); !checked) {
    return invalid(checked.error().at, "{}", checked.error().message);
  }
  return {};
}

Result<std::vector<Manifest>> parse_manifests(const std::string& file, const std::string& text) {
  SPILLWAY_TRY(documents, yaml::parse_documents(file, text, yaml::RepeatedKeys::kLastCounts, yaml::LeadingZero::kOctal,
                                                kFileDocumentsMax));
  std::vector<Manifest> found;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].value.is_null()) continue;  // comments only
    const std::string place = documents.size() == 1 ? file : fmt::format("{}, document {}", file, i + 1);
    SPILLWAY_TRY_VOID(add_object(place, std::move(documents[i].value), found));
  }
  return found;
}

Result<std::map<std::string, ManifestFolder::Version>> ManifestFolder::versions() const {
  std::map<std::string, Version> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator each(folder_, failed), end; !failed && each != end; each.increment(failed)) {
    const std::filesystem::path& path = each->path();
    const std::string extension = path.extension().string();
    if (extension != ".yaml" && extension != ".yml" && extension != ".json") continue;
    struct stat status{};
    // a link stands for the file it leads to
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (found.size() == kFilesMax) return invalid(folder_, "more than {} files", kFilesMax);
    found.emplace(path.filename().string(), Version{status.st_ino, status.st_size,
                                                    status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec});
  }
  if (failed) return invalid(folder_, "{}", failed.message());
  return found;
}

ManifestFolder::Change ManifestFolder::read() {
  Change change;
  const Result<std::map<std::string, Version>> present = versions();
  if (!present) {
    // The objects of the last reading stay wanted.
    if (std::exchange(failure_, present.error().text()) != present.error().text()) {
      change.problems.push_back(present.error());
    }
    return change;
  }
  failure_.clear();
  change.any = std::erase_if(files_, [&](const auto& each) { return !present->contains(each.first); }) > 0;
  for (const auto& [name, version] : *present) {
    const auto known = files_.find(name);
    if (known != files_.end() && known->second.version == version) continue;
    change.any = true;
    File& file = files_[name];
    file.version = version;
    const Result<std::string> text = read_manifest_file(folder_ + "/" + name, name);
    Result<std::vector<Manifest>> read = text ? parse_manifests(name, *text) : text.error();
    if (read) {
      file.manifests = *std::move(read);
    } else {
      change.problems.push_back(read.error());
    }
  }
  if (!change.any) return change;
  for (const auto& [name, file] : files_) {
    if (change.manifests.size() + file.manifests.size() > kObjectsMax) {
      change.problems.push_back(make_error(
          ErrorCode::kInvalid, "{} and later files are not applied: more than {} objects", name, kObjectsMax));
      break;
    }
    change.manifests.insert(change.manifests.end(), file.manifests.begin(), file.manifests.end());
  }
  return change;
}

}  // namespace spillway::apps
