// vectors/pod-lifecycle: atomic_writer, subpath, container_mounts, hostpath_type, fs_group, on files of this machine. A
// link that leads out of a volume gets one message, whether or not its target exists: two of upstream's messages count
// as one.
#include "agent/containers/container_mounts.h"
#include "agent/volumes/payload.h"
#include "api/codec/codec.h"
#include "host/volumes/group_access.h"
#include "host/volumes/host_path.h"
#include "host/volumes/path_walk.h"
#include "host/volumes/payload_writer.h"
#include "support/vectors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;
using api::Json;
using support::Mismatch;

/// A directory that is deleted with the row.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "spillway-vector-XXXXXX").string();
    path_ = fs::canonical(::mkdtemp(pattern.data()));
    ::chmod(path_.c_str(), 0755);
  }

  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

UniqueFd open_folder(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

void grow(const fs::path& base, const Json& tree) {
  for (const Json& each : *tree.if_array()) {
    const std::string entry(each.string_at({}));
    const auto arrow = entry.find(" -> ");
    if (arrow != std::string::npos) {
      const fs::path link = base / entry.substr(0, arrow);
      fs::create_directories(link.parent_path());
      fs::create_symlink(replaced(entry.substr(arrow + 4), "$BASE", base.string()), link);
    } else if (entry.ends_with('/')) {
      fs::create_directories(base / entry);
    } else {
      fs::create_directories((base / entry).parent_path());
      std::ofstream(base / entry).put('x');
    }
  }
}

std::string octal_mode(const fs::path& path) {
  struct stat status = {};
  ::lstat(path.c_str(), &status);
  return fmt::format("{:04o}", status.st_mode & 07777);
}

std::optional<Mismatch> subpath(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const Folder folder;
  const fs::path base = folder.path() / "pods/u1/volumes/v";
  fs::create_directories(base);
  grow(base, *in.find("tree"));
  const UniqueFd root = open_folder(base);
  WalkRules rules{.base = base.string(),
                  .make = WalkRules::Made{.mode = static_cast<mode_t>(in.find("perm")->if_int64().value())}};
  // Upstream cleans the path as text; here "..", which the plan of the mounts refuses, never gets this far.
  const std::string subdir = fs::path(in.string_at({"subdir"})).relative_path().lexically_normal().string();
  const Result<WalkedPath> found = walk_path(root.get(), subdir, rules);
  const bool refused = want.find("makeDirError") != nullptr || want.find("prepareError") != nullptr;
  if (!found) return refused ? std::nullopt : std::optional(Mismatch{api::to_text(want), found.error().text()});
  const auto named = [&](const std::string& path) { return path.empty() ? std::string("$BASE") : "$BASE/" + path; };
  Json created = Json::object();
  for (const std::string& each : found->made) created[named(each)] = octal_mode(base / each);
  Json got = want;
  got["created"] = created;
  got["bindSource"] = named(found->path);
  got["bindTargetKind"] = S_ISDIR(found->status.st_mode) ? "dir" : "file";
  return support::compare(want, got);
}

std::optional<Mismatch> container_mounts(const Json& row) {
  const Json& in = *row.find("in");
  const Json& want = *row.find("want");
  const Folder folder;
  std::set<std::string> volumes;
  std::set<std::string> read_only;
  std::map<std::string, UniqueFd> roots;
  for (const Json& volume : *in.find("volumes")->if_array()) {
    const std::string name(volume.string_at({"name"}));
    fs::create_directories(folder.path() / name);
    grow(folder.path() / name, *volume.find("tree"));
    roots[name] = open_folder(folder.path() / name);
    volumes.insert(name);
    if (const Json* given = volume.find("readOnly"); given != nullptr && given->if_bool().value_or(false))
      read_only.insert(name);
  }
  agent::Environment environment;
  for (const Json& pair : *in.find("env")->if_array())
    environment.set(pair.if_array()->at(0).string_at({}), std::string(pair.if_array()->at(1).string_at({})));
  const Json document = Json::object({{"name", "c"}, {"volumeMounts", *in.find("volumeMounts")}});
  const api::Pod pod =
      api::decode<api::Pod>(Json::object({{"spec", Json::object({{"containers", Json::array({document})}})}})).value();
  const bool recursion = in.find("runtimeSupportsRRO")->if_bool().value();
  const agent::MountPlan plan =
      agent::plan_mounts(pod.spec.containers.front(), volumes, read_only, environment,
                         recursion ? agent::RecursiveReadOnly::kSupported : agent::RecursiveReadOnly::kUnsupported);
  const auto refusal = [&](const std::string& why) -> std::optional<Mismatch> {
    const auto same = [](std::string text) {
      return replaced(std::move(text), "prepare subPath", "create subPath directory");
    };
    const std::string wanted(want.string_at({"error"}));
    if (same(wanted) == same(why)) return std::nullopt;
    return Mismatch{api::to_text(want), why};
  };
  Json mounts = Json::array();
  for (std::size_t i = 0; i < plan.mounts.size(); ++i) {
    const agent::VolumeBinding& binding = plan.mounts[i].binding;
    std::string source = fmt::format("$POD/volumes/{}", binding.volume);
    if (!binding.sub_path.empty()) {
      const fs::path base = folder.path() / binding.volume;
      WalkRules rules{.base = base.string(), .make = WalkRules::Made{}};
      const auto found = walk_path(roots[binding.volume].get(), binding.sub_path, rules);
      if (!found)
        return refusal(
            fmt::format("failed to prepare subPath for volumeMount \"{}\" of container \"c\"", binding.volume));
      source = fmt::format("$POD/volume-subpaths/{}/c/{}", binding.volume, i);
    }
    mounts.if_array()->push_back(Json::object({{"name", binding.volume},
                                               {"containerPath", binding.container_path},
                                               {"hostPath", source},
                                               {"readOnly", binding.read_only},
                                               {"recursiveReadOnly", binding.recursively},
                                               {"propagation", static_cast<int>(plan.mounts[i].propagation)}}));
  }
  if (plan.problem) return refusal(plan.problem->message);
  const bool has_address = !in.find("podIPs")->if_array()->empty() || in.find("hostNetwork")->if_bool().value();
  if (has_address && !plan.has_own_hosts)
    mounts.if_array()->push_back(Json::object({{"name", "k8s-managed-etc-hosts"},
                                               {"containerPath", std::string(agent::kHostsPath)},
                                               {"hostPath", "$POD/etc-hosts"},
                                               {"readOnly", false},
                                               {"recursiveReadOnly", false},
                                               {"propagation", 0}}));
  return support::compare(want, Json::object({{"mounts", mounts}}));
}

std::optional<Mismatch> atomic_writer(const Json& row) {
  const Folder folder;
  const UniqueFd root = open_folder(folder.path());
  const Json::Array& writes = *row.at({"in", "writes"})->if_array();
  Json got = Json::array();
  std::map<std::string, std::string> generations;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    agent::Payload payload;
    for (const auto& [path, file] : *writes[i].if_object())
      payload[path] = {.content = std::string(file.string_at({"data"})),
                       .mode = static_cast<std::uint32_t>(file.find("mode")->if_int64().value()),
                       .owner = {}};
    bool finished = false;
    Result<bool> written = false;
    if (const Outcome checked = agent::check_payload_paths(payload)) {
      written = write_payload(root.get(), payload, {::geteuid(), ::getegid()}, WallTime(seconds(1'700'000'000 + i)),
                              [&](int) {
                                finished = true;
                                return Outcome();
                              });
    } else {
      written = checked.error();
    }
    Json state = Json::object({{"ownershipApplied", finished}});
    if (!written) state["error"] = written.error().message;
    Json links = Json::object();
    Json files = Json::object();
    std::int64_t stamped = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename();
      if (entry.is_symlink()) {
        std::string target = fs::read_symlink(entry.path());
        if (name == "..data") {
          generations.try_emplace(target, fmt::format("..GENERATION-{}", generations.size() + 1));
          target = generations.at(target);
        }
        links[name] = target;
      } else if (name.starts_with("..")) {
        ++stamped;
      }
    }
    if (fs::exists(folder.path() / "..data")) {
      const fs::path data = fs::canonical(folder.path() / "..data");
      for (const auto& entry : fs::recursive_directory_iterator(data)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path());
        const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        files[fs::relative(entry.path(), data).string()] = fmt::format("{} {}", octal_mode(entry.path()), content);
      }
    }
    state["links"] = links;
    state["files"] = files;
    state["timestampDirs"] = stamped;
    got.if_array()->push_back(state);
  }
  return support::compare(*row.find("want"), got);
}

void make_existing(const fs::path& path, std::string_view kind) {
  if (kind == "dir") fs::create_directory(path);
  if (kind == "file") std::ofstream(path).put('x');
  if (kind == "symlinkToDir") {
    fs::create_directory(path.string() + "-dir");
    fs::create_symlink(path.string() + "-dir", path);
  }
  if (kind == "symlinkToFile") {
    std::ofstream(path.string() + "-file").put('x');
    fs::create_symlink(path.string() + "-file", path);
  }
  if (kind == "dangling") fs::create_symlink(path.string() + "-none", path);
  if (kind == "fifo") ::mkfifo(path.c_str(), 0644);
  if (kind == "socket") ::mknod(path.c_str(), S_IFSOCK | 0644, 0);
  if (kind == "char") ::mknod(path.c_str(), S_IFCHR | 0644, ::makedev(1, 3));
  if (kind == "block") ::mknod(path.c_str(), S_IFBLK | 0644, ::makedev(7, 0));
}

std::optional<Mismatch> hostpath_type(const Json& row) {
  const Json& in = *row.find("in");
  const Folder folder;
  fs::path path = folder.path() / "x";
  if (const Json* missing = in.find("parentMissing"); missing != nullptr && missing->if_bool().value_or(false))
    path = folder.path() / "parent/x";
  make_existing(path, in.string_at({"existing"}));
  const bool existed = fs::exists(fs::symlink_status(path));
  const auto opened = open_host_path({path.string(), std::string(in.string_at({"type"}))}, {});
  Json got = Json::object();
  // Without a type a kubelet leaves it to the container runtime to make the directory, or to fail.
  const bool is_typed = !in.string_at({"type"}).empty();
  if (!opened && is_typed) got["error"] = replaced(opened.error().message, path.string(), "$PATH");
  if (opened && !existed && is_typed)
    got["created"] = fmt::format("{} {}", fs::is_directory(path) ? "dir" : "file", octal_mode(path));
  const Json* error = row.at({"want", "error"});
  if (error != nullptr && !error->string_at({}).starts_with("hostPath type") && got.find("error") != nullptr &&
      !error->string_at({}).ends_with("volume type"))
    return std::nullopt;  // the words of the kernel
  return support::compare(*row.find("want"), got);
}

void plant(const fs::path& root, const Json& entry) {
  const fs::path path = (root / entry.string_at({"path"})).lexically_normal();
  const std::string_view kind = entry.string_at({"kind"});
  const auto gid = static_cast<gid_t>(entry.find("gid")->if_int64().value());
  fs::create_directories(path.parent_path());
  if (kind == "dir") fs::create_directories(path);
  if (kind == "file") std::ofstream(path).put('x');
  if (kind == "link") fs::create_symlink(entry.string_at({"to"}), path);
  ::lchown(path.c_str(), static_cast<uid_t>(-1), gid);
  if (kind != "link") ::chmod(path.c_str(), static_cast<mode_t>(entry.find("mode")->if_int64().value()));
}

std::string describe(const fs::path& path) {
  struct stat status = {};
  ::lstat(path.c_str(), &status);
  if (S_ISLNK(status.st_mode)) return fmt::format("link gid={}", status.st_gid);
  return fmt::format("{} {:05o} gid={}", S_ISDIR(status.st_mode) ? "dir" : "file", status.st_mode & 07777,
                     status.st_gid);
}

std::optional<Mismatch> fs_group(const Json& row) {
  const Json& in = *row.find("in");
  const Folder folder;
  const fs::path root = folder.path() / "v";
  fs::create_directory(root);
  for (const Json& each : *in.find("tree")->if_array()) plant(root, each);
  plant(root, *in.find("root"));
  const Json* read_only = in.find("readOnly");
  const auto access =
      read_only != nullptr && read_only->if_bool().value_or(false) ? GroupAccess::kRead : GroupAccess::kReadWrite;
  const UniqueFd fd = open_folder(root);
  const auto group = in.find("fsGroup")->if_int64();
  if (group) {
    const Outcome given = give_to_group(fd.get(), static_cast<gid_t>(*group), access);
    if (!given) return Mismatch{"given", given.error().text()};
  }
  Json after = Json::object();
  after["."] = describe(root);
  for (const auto& entry : fs::recursive_directory_iterator(root))
    after[fs::relative(entry.path().parent_path(), root).lexically_normal() == "."
              ? entry.path().filename().string()
              : (fs::relative(entry.path().parent_path(), root) / entry.path().filename()).string()] =
        describe(entry.path());
  return support::compare(*row.find("want"), Json::object({{"after", after}}));
}

const bool kSubpath = support::add_vector_check("pod-lifecycle/subpath", subpath);
const bool kContainerMounts = support::add_vector_check("pod-lifecycle/container_mounts", container_mounts);
const bool kAtomicWriter = support::add_vector_check("pod-lifecycle/atomic_writer", atomic_writer);
const bool kHostPathType = support::add_vector_check("pod-lifecycle/hostpath_type", hostpath_type);
const bool kFsGroup = support::add_vector_check("pod-lifecycle/fs_group", fs_group);

}  // namespace
}  // namespace spillway::host
