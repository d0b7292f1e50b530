// One connection to a SQLite file and its prepared statements, as values that report errors as Result.
// Thread: one at a time per connection; a statement belongs to its connection's thread and must not outlive it.
// Source: SQLite C interface; connections are opened without SQLite's own mutexes.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace spillway::store::sqlite {

/// The kind of the last failure on a connection: decides if another attempt can help.
enum class Trouble {
  kNone,
  kFull,     // no space for another page: ends when space is freed
  kBusy,     // another program holds the file's lock
  kDamaged,  // the file was changed by others, or is not a database
  kIo,       // the disk failed: its content is unknown until it is read again
  kOther,
};

/// Bytes bound as a blob; a string_view is bound as text.
struct Blob {
  std::string_view bytes;
};

/// The rows of one execution. Values are valid until next() or the destruction, which ends the execution.
class Rows {
 public:
  Rows(sqlite3* database, sqlite3_stmt* statement, int bind_code);
  ~Rows();
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  /// Steps to the next row. True: there is one.
  Result<bool> next();
  std::int64_t integer(int column) const;
  /// Text or blob, as bytes.
  std::string_view bytes(int column) const;
  bool is_null(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  int bind_code_;
};

class Statement {
 public:
  Statement() = default;

  /// Starts an execution with the arguments bound in order. They must stay valid while the Rows live. One at a time.
  template <typename... Args>
  Rows query(const Args&... args) {
    int index = 0;
    int code = 0;
    ((code = code != 0 ? code : bind(++index, args)), ...);
    return Rows(database_, handle_.get(), code);
  }

  /// Executes to the end; rows are dropped.
  template <typename... Args>
  Outcome run(const Args&... args) {
    Rows rows = query(args...);
    return finish(rows);
  }

 private:
  friend class Connection;

  struct Finalize {
    void operator()(sqlite3_stmt* handle) const;
  };

  int bind(int index, std::int64_t value);
  int bind(int index, std::uint64_t value);
  int bind(int index, std::string_view value);
  int bind(int index, const Blob& value);
  int bind(int index, std::nullptr_t value);
  static Outcome finish(Rows& rows);

  sqlite3* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Bytes that SQLite holds in this process: pages, statements, schemas of all connections. Thread: any.
std::size_t library_bytes();

enum class Access { kReadOnly, kReadWrite };

class Connection {
 public:
  Connection() = default;

  /// The file must exist for kReadOnly; kReadWrite creates it. Errors name the file.
  static Result<Connection> open(const std::string& path, Access access);

  /// Executes one or more statements without results.
  Outcome exec(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  /// The first column of the first row as a number; kInternalError if there is none.
  Result<std::int64_t> number(std::string_view sql);

  /// Stops commits from moving the write-ahead log into the database; log_pages() returns its length.
  void follow_log();

  /// Pages in the log after the last commit.
  std::int64_t log_pages() const { return *log_pages_; }

  /// Called now and then while statements run: false ends the present one with an error.
  void set_progress_handler(std::function<bool()> should_continue);

  Trouble trouble() const;
  /// True while a transaction is open.
  bool in_transaction() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };

  std::unique_ptr<std::int64_t> log_pages_ = std::make_unique<std::int64_t>(0);
  std::unique_ptr<std::function<bool()>> should_continue_;  // outlives the handle, which calls it, as log_pages_ does
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace spillway::store::sqlite
