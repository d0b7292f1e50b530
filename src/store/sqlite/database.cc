#include "store/sqlite/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

namespace spillway::store::sqlite {
namespace {

Trouble trouble_of(sqlite3* database) {
  const int code = sqlite3_extended_errcode(database);
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return Trouble::kNone;
    case SQLITE_FULL:
      return Trouble::kFull;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Trouble::kBusy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Trouble::kDamaged;
    case SQLITE_IOERR: {
      const int cause = sqlite3_system_errno(database);
      const bool space = cause == ENOSPC || cause == EDQUOT;
      return space && code != SQLITE_IOERR_FSYNC ? Trouble::kFull : Trouble::kIo;
    }
    default:
      return Trouble::kOther;
  }
}

Error error_of(sqlite3* database) {
  const Trouble trouble = trouble_of(database);
  const bool may_pass = trouble == Trouble::kFull || trouble == Trouble::kBusy;
  return make_error(may_pass ? ErrorCode::kServiceUnavailable : ErrorCode::kInternalError, "{}",
                    sqlite3_errmsg(database));
}

}  // namespace

std::size_t library_bytes() {
  return static_cast<std::size_t>(sqlite3_memory_used());
}

Rows::Rows(sqlite3* database, sqlite3_stmt* statement, int bind_code)
    : database_(database), statement_(statement), bind_code_(bind_code) {}

Rows::~Rows() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Result<bool> Rows::next() {
  if (bind_code_ != SQLITE_OK) return error_of(database_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_of(database_);
}

std::int64_t Rows::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string_view Rows::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string_view() : std::string_view(data, static_cast<std::size_t>(size));
}

bool Rows::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const {
  sqlite3_finalize(handle);
}

int Statement::bind(int index, std::int64_t value) {
  return sqlite3_bind_int64(handle_.get(), index, value);
}

int Statement::bind(int index, std::uint64_t value) {
  return sqlite3_bind_int64(handle_.get(), index, static_cast<std::int64_t>(value));
}

int Statement::bind(int index, std::string_view value) {
  // A null pointer would bind NULL; an empty text is a text.
  const char* data = value.empty() ? "" : value.data();
  return sqlite3_bind_text64(handle_.get(), index, data, value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

int Statement::bind(int index, const Blob& value) {
  const char* data = value.bytes.empty() ? "" : value.bytes.data();
  return sqlite3_bind_blob64(handle_.get(), index, data, value.bytes.size(), SQLITE_STATIC);
}

int Statement::bind(int index, std::nullptr_t) {
  return sqlite3_bind_null(handle_.get(), index);
}

Outcome Statement::finish(Rows& rows) {
  for (;;) {
    SPILLWAY_TRY(more, rows.next());
    if (!more) return {};
  }
}

void Connection::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

Result<Connection> Connection::open(const std::string& path, Access access) {
  sqlite3* raw = nullptr;
  const int mode = access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection out;
  out.handle_.reset(raw);
  if (raw == nullptr) return Error{ErrorCode::kInternalError, "out of memory", path};
  if (code != SQLITE_OK) {
    Error error = error_of(raw);
    error.at = path;
    return error;
  }
  sqlite3_extended_result_codes(raw, 1);
  return out;
}

Outcome Connection::exec(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error_of(handle_.get());
  return {};
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  Statement out;
  out.database_ = handle_.get();
  out.handle_.reset(raw);
  if (code != SQLITE_OK) return error_of(handle_.get());
  return out;
}

Result<std::int64_t> Connection::number(std::string_view sql) {
  SPILLWAY_TRY(statement, prepare(sql));
  Rows rows = statement.query();
  SPILLWAY_TRY(found, rows.next());
  if (!found) return make_error(ErrorCode::kInternalError, "no answer to: {}", sql);
  return rows.integer(0);
}

void Connection::set_progress_handler(std::function<bool()> should_continue) {
  constexpr int kSteps = 10'000;  // instructions of SQLite's virtual machine: some tenths of a millisecond
  should_continue_ = std::make_unique<std::function<bool()>>(std::move(should_continue));
  const auto ask = [](void* function) { return (*static_cast<std::function<bool()>*>(function))() ? 0 : 1; };
  sqlite3_progress_handler(handle_.get(), kSteps, ask, should_continue_.get());
}

void Connection::follow_log() {
  const auto record_pages = [](void* pages, sqlite3*, const char*, int count) {
    *static_cast<std::int64_t*>(pages) = count;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(handle_.get(), record_pages, log_pages_.get());  // in the place of the automatic checkpoint
}

Trouble Connection::trouble() const {
  return trouble_of(handle_.get());
}

bool Connection::in_transaction() const {
  return sqlite3_get_autocommit(handle_.get()) == 0;
}

}  // namespace spillway::store::sqlite
