#include "store/faulty_disk.h"

#include "base/check.h"

#include <sqlite3.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::store {
namespace {

constexpr const char* kName = "spillway-faulty";

/// A write, or a truncation if there are no bytes.
struct Step {
  std::size_t offset = 0;
  std::string bytes;
};

void apply(const Step& step, std::string& content) {
  if (step.bytes.empty()) return content.resize(step.offset);
  if (content.size() < step.offset + step.bytes.size()) content.resize(step.offset + step.bytes.size());
  content.replace(step.offset, step.bytes.size(), step.bytes);
}

/// The content of a file that is certain, and the steps since.
struct Content {
  std::string synced;
  std::vector<Step> since;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

struct FaultyDisk::State {
  mutable std::mutex mutex;
  std::map<std::string, Content> files;
  std::atomic<Fault> writes{Fault::kNone};
  std::atomic<Fault> syncs{Fault::kNone};
  std::atomic<Fault> database_writes{Fault::kNone};
  std::atomic<std::int64_t> database_bytes_max{std::numeric_limits<std::int64_t>::max()};
  std::atomic<int> last_errno{0};
  sqlite3_vfs* real = nullptr;
  sqlite3_vfs own{};
};

namespace {

FaultyDisk::State* disk_of(sqlite3_vfs* vfs) {
  return static_cast<FaultyDisk::State*>(vfs->pAppData);
}

/// A file in front of the real one, in the memory that SQLite allocates.
struct File {
  sqlite3_file base;
  FaultyDisk::State* disk;
  const char* path;  // SQLite keeps it while the file is open; null: a file that these faults do not concern

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File& file_of(sqlite3_file* file) {
  return *reinterpret_cast<File*>(file);
}

/// Returns the codes of SQLite's own VFS: a write without space has another code than one that fails, a sync has not.
int code_of_write(FaultyDisk::Fault fault, FaultyDisk::State& disk) {
  disk.last_errno = fault == FaultyDisk::Fault::kIo ? EIO : ENOSPC;
  return fault == FaultyDisk::Fault::kIo ? SQLITE_IOERR_WRITE : SQLITE_FULL;
}

int code_of_sync(FaultyDisk::Fault fault, FaultyDisk::State& disk) {
  disk.last_errno = fault == FaultyDisk::Fault::kIo ? EIO : ENOSPC;
  return SQLITE_IOERR_FSYNC;
}

void record(File& file, Step step) {
  const std::lock_guard lock(file.disk->mutex);
  file.disk->files[file.path].since.push_back(std::move(step));
}

int write_real(File& file, const void* data, int size, sqlite3_int64 offset) {
  const int code = file.real()->pMethods->xWrite(file.real(), data, size, offset);
  if (code == SQLITE_OK && file.path != nullptr && size > 0) {
    record(file, {static_cast<std::size_t>(offset),
                  std::string(static_cast<const char*>(data), static_cast<std::size_t>(size))});
  }
  return code;
}

int write(sqlite3_file* handle, const void* data, int size, sqlite3_int64 offset) {
  File& file = file_of(handle);
  FaultyDisk::Fault fault = file.path == nullptr ? FaultyDisk::Fault::kNone : file.disk->writes.load();
  if (fault == FaultyDisk::Fault::kNone && file.path != nullptr && !std::string_view(file.path).ends_with("-wal")) {
    fault = file.disk->database_writes.load();
    if (fault == FaultyDisk::Fault::kNone && offset + size > file.disk->database_bytes_max) {
      fault = FaultyDisk::Fault::kNoSpace;
    }
  }
  if (fault == FaultyDisk::Fault::kNone) return write_real(file, data, size, offset);
  if (fault == FaultyDisk::Fault::kShortWrite) write_real(file, data, size / 2, offset);
  return code_of_write(fault, *file.disk);
}

int cut(sqlite3_file* handle, sqlite3_int64 size) {
  File& file = file_of(handle);
  const int code = file.real()->pMethods->xTruncate(file.real(), size);
  if (code == SQLITE_OK && file.path != nullptr) record(file, {static_cast<std::size_t>(size), {}});
  return code;
}

int sync(sqlite3_file* handle, int flags) {
  File& file = file_of(handle);
  if (file.path == nullptr) return file.real()->pMethods->xSync(file.real(), flags);
  if (file.disk->syncs != FaultyDisk::Fault::kNone) return code_of_sync(file.disk->syncs, *file.disk);
  // No real sync, which would only take time.
  const std::lock_guard lock(file.disk->mutex);
  Content& content = file.disk->files[file.path];
  for (const Step& step : std::exchange(content.since, {})) apply(step, content.synced);
  return SQLITE_OK;
}

int close(sqlite3_file* handle) {
  File& file = file_of(handle);
  return file.real()->pMethods->xClose(file.real());
}

template <auto Method, typename... Args>
int pass(sqlite3_file* handle, Args... args) {
  sqlite3_file* real = file_of(handle).real();
  return (real->pMethods->*Method)(real, args...);
}

void shm_barrier(sqlite3_file* handle) {
  sqlite3_file* real = file_of(handle).real();
  real->pMethods->xShmBarrier(real);
}

constexpr sqlite3_io_methods kMethods = [] {
  using M = sqlite3_io_methods;
  M m{};
  m.iVersion = 2;  // no memory-mapped pages: writes to them could not be intercepted
  m.xClose = close;
  m.xRead = pass<&M::xRead, void*, int, sqlite3_int64>;
  m.xWrite = write;
  m.xTruncate = cut;
  m.xSync = sync;
  m.xFileSize = pass<&M::xFileSize, sqlite3_int64*>;
  m.xLock = pass<&M::xLock, int>;
  m.xUnlock = pass<&M::xUnlock, int>;
  m.xCheckReservedLock = pass<&M::xCheckReservedLock, int*>;
  m.xFileControl = pass<&M::xFileControl, int, void*>;
  m.xSectorSize = pass<&M::xSectorSize>;
  m.xDeviceCharacteristics = pass<&M::xDeviceCharacteristics>;
  m.xShmMap = pass<&M::xShmMap, int, int, int, volatile void**>;
  m.xShmLock = pass<&M::xShmLock, int, int, int>;
  m.xShmBarrier = shm_barrier;
  m.xShmUnmap = pass<&M::xShmUnmap, int>;
  return m;
}();

int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* handle, int flags, int* opened) {
  FaultyDisk::State* disk = disk_of(vfs);
  const bool ours =
      path != nullptr && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  File* file = new (handle) File{{nullptr}, disk, ours ? path : nullptr};
  if (ours) {
    const std::lock_guard lock(disk->mutex);
    if (!disk->files.contains(path)) disk->files[path].synced = read_file(path);
  }
  const int code = disk->real->xOpen(disk->real, path, file->real(), flags, opened);
  if (file->real()->pMethods != nullptr) file->base.pMethods = &kMethods;
  return code;
}

int remove(sqlite3_vfs* vfs, const char* path, int sync_directory) {
  FaultyDisk::State* disk = disk_of(vfs);
  const std::lock_guard lock(disk->mutex);
  disk->files.erase(path);
  return disk->real->xDelete(disk->real, path, sync_directory);
}

int last_error(sqlite3_vfs* vfs, int, char*) {
  return disk_of(vfs)->last_errno;
}

}  // namespace

FaultyDisk::FaultyDisk() : state_(std::make_unique<State>()) {
  state_->real = ::sqlite3_vfs_find(nullptr);
  SPILLWAY_CHECK(state_->real != nullptr && std::string(state_->real->zName) != kName);
  state_->own = *state_->real;
  state_->own.pNext = nullptr;
  state_->own.zName = kName;
  state_->own.szOsFile = static_cast<int>(sizeof(File)) + state_->real->szOsFile;
  state_->own.pAppData = state_.get();
  state_->own.xOpen = open;
  state_->own.xDelete = remove;
  state_->own.xGetLastError = last_error;
  // The other functions are called with our own structure; the real one reads its pAppData only when it opens files.
  SPILLWAY_CHECK(::sqlite3_vfs_register(&state_->own, 1) == SQLITE_OK);
}

FaultyDisk::~FaultyDisk() {
  ::sqlite3_vfs_unregister(&state_->own);
  ::sqlite3_vfs_register(state_->real, 1);
}

void FaultyDisk::fail_writes(Fault fault) {
  state_->writes = fault;
}

void FaultyDisk::fail_database_writes(Fault fault) {
  state_->database_writes = fault;
}

void FaultyDisk::limit_database(std::optional<std::int64_t> bytes) {
  state_->database_bytes_max = bytes.value_or(std::numeric_limits<std::int64_t>::max());
}

void FaultyDisk::fail_syncs(Fault fault) {
  state_->syncs = fault;
}

void FaultyDisk::lose_power(const std::string& of, const std::string& directory, Rng& rng) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [path, content] : state_->files) {
    const std::filesystem::path from(path);
    if (from.parent_path() != of) continue;
    std::string left = content.synced;
    for (const Step& step : content.since) {
      if (rng.below(2) == 0) apply(step, left);
    }
    const std::filesystem::path to = std::filesystem::path(directory) / from.filename();
    std::ofstream(to, std::ios::binary | std::ios::trunc) << left;
    std::filesystem::permissions(to, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

}  // namespace spillway::store
