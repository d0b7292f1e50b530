// Values of expressions. Values from documents, or from the expression's own text, are views: they are valid as long as
// both. Thread: any (plain values). Source: CEL language definition, values.
#pragma once

#include "api/json/json.h"
#include "api/text/ip_address.h"
#include "api/text/quantity.h"
#include "base/fiber.h"
#include "base/time.h"
#include "policy/cel/access.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::cel {

class Value;

/// Text that is seen elsewhere, or that the evaluation made (`made`); UTF-8.
struct Text {
  std::string_view text;
  std::shared_ptr<const std::string> made = {};
};

struct Bytes {
  std::string_view bytes;
  std::shared_ptr<const std::string> made = {};
};

/// Lists of schemas may be sets, or maps by some of their members: two of them are equal whatever the order, and a sum
/// has every element once.
enum class ListKind : std::uint8_t { kPlain, kSet, kMap };

class List {
 public:
  explicit List(const api::Json::Array& seen) : seen_(&seen) {}

  explicit List(std::vector<Value> made);
  /// `keys`: of kMap, the names of the members that identify elements, as expressions spell them.
  List(std::vector<Value> made, ListKind kind, std::shared_ptr<const std::vector<std::string>> keys);

  std::size_t size() const;
  Value at(std::size_t index) const;

  ListKind kind() const { return kind_; }

  const std::shared_ptr<const std::vector<std::string>>& keys() const { return keys_; }

 private:
  const api::Json::Array* seen_ = nullptr;
  ListKind kind_ = ListKind::kPlain;
  std::shared_ptr<const std::vector<Value>> made_;
  std::shared_ptr<const std::vector<std::string>> keys_;
};

/// The members of documents have texts as keys.
class Map {
 public:
  using Entries = std::vector<std::pair<Value, Value>>;

  explicit Map(const api::Json::Object& seen) : seen_(&seen) {}

  explicit Map(Entries made);

  std::size_t size() const;
  Value key_at(std::size_t index) const;
  Value value_at(std::size_t index) const;
  /// The value of that key; nullopt: the map has no such key.
  std::optional<Value> find(std::string_view key) const;
  std::optional<Value> find(const Value& key) const;
  /// The number of keys compared in find().
  std::size_t search_cost() const;

 private:
  const api::Json::Object* seen_ = nullptr;
  std::shared_ptr<const Entries> made_;
};

/// A moment, and the offset from UTC that it was written with, which texts of it show again.
struct Moment {
  std::int64_t seconds = 0;  // since 1970, in UTC
  std::int32_t nanoseconds = 0;
  std::int32_t offset_seconds = 0;  // east is positive

  friend auto operator<=>(const Moment& a, const Moment& b) {
    return a.seconds != b.seconds ? a.seconds <=> b.seconds
                                  : std::int64_t{a.nanoseconds} <=> std::int64_t{b.nanoseconds};
  }

  friend bool operator==(const Moment& a, const Moment& b) {
    return a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
  }
};

/// A type as a value: type(1) is int.
struct TypeName {
  std::string_view name;
};

/// The stage of an authorization check.
enum class AccessStage : std::uint8_t { kAuthorizer, kPath, kGroup, kResource, kDecision };

struct Access {
  AccessStage stage = AccessStage::kAuthorizer;
  std::shared_ptr<const AccessRequest> request = {};
  std::shared_ptr<const AccessDecision> decision = {};
};

struct Amount {
  std::shared_ptr<const api::Quantity> quantity;
};

struct UrlParts;

struct Url {
  std::shared_ptr<const UrlParts> parts;
};

/// A format and its name: "dns1123Label".
struct NamedFormat {
  std::string_view name;
};

/// A value that may be absent.
struct Optional {
  std::shared_ptr<const Value> value = {};  // null: absent
};

enum class Kind : std::uint8_t {
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kList,
  kMap,
  kTimestamp,
  kDuration,
  kType,
  kAccess,
  kQuantity,
  kUrl,
  kIp,
  kCidr,
  kFormat,
  kOptional,
};

class Value {
 public:
  Value() = default;  // null

  explicit Value(bool value) : value_(value) {}

  explicit Value(std::int64_t value) : value_(value) {}

  explicit Value(std::uint64_t value) : value_(value) {}

  explicit Value(double value) : value_(value) {}

  explicit Value(Text value) : value_(std::move(value)) {}

  explicit Value(Bytes value) : value_(std::move(value)) {}

  explicit Value(List value) : value_(std::move(value)) {}

  explicit Value(Map value) : value_(std::move(value)) {}

  explicit Value(Moment value) : value_(value) {}

  explicit Value(Duration value) : value_(value) {}

  explicit Value(TypeName value) : value_(value) {}

  explicit Value(Access value) : value_(std::move(value)) {}

  explicit Value(Amount value) : value_(std::move(value)) {}

  explicit Value(Url value) : value_(std::move(value)) {}

  explicit Value(api::IpAddress value) : value_(value) {}

  explicit Value(api::IpRange value) : value_(value) {}

  explicit Value(NamedFormat value) : value_(value) {}

  explicit Value(Optional value) : value_(std::move(value)) {}

  /// A view of the document.
  static Value of(const api::Json& json);
  static Value text(std::string made);
  static Value bytes(std::string made);
  static Value quantity(api::Quantity made);
  /// Present.
  static Value some(Value value);

  /// Absent.
  static Value none() { return Value(Optional{}); }

  Kind kind() const { return static_cast<Kind>(value_.index()); }

  bool is(Kind kind) const { return this->kind() == kind; }

  bool is_number() const { return is(Kind::kInt) || is(Kind::kUint) || is(Kind::kDouble); }

  /// The value is of that type.
  template <typename T>
  const T& as() const {
    return *std::get_if<T>(&value_);
  }

  std::string_view string() const { return as<Text>().text; }

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, Text, Bytes, List, Map, Moment, Duration,
               TypeName, Access, Amount, Url, api::IpAddress, api::IpRange, NamedFormat, Optional>
      value_;
};

/// The name of the value's type: "int", "null_type", …
std::string_view type_name(const Value& value);

/// The rest of an evaluation's budget, in Kubernetes' units of cost (pay) and in units of work (charge): some
/// operations of low cost are much work. One unit is about one step, or ten bytes read.
class Budget {
 public:
  explicit Budget(std::uint64_t units) : left_(units), work_left_(units * kWorkPerUnit) {}

  /// Spends cost units. False from the moment on that the budget is used up.
  bool charge(std::uint64_t work) {
    report(work);
    if (work > work_left_ / kWorkPerUnit) spent_ = true;
    work_left_ = spent_ ? 0 : work_left_ - work * kWorkPerUnit;
    return !spent_;
  }

  /// Spends one step, which also costs a unit: so the budget bounds the number of steps.
  bool step() {
    report(1);
    if (work_left_ == 0) spent_ = true;
    work_left_ = spent_ ? 0 : work_left_ - 1;
    return !spent_;
  }

  bool charge_bytes(std::uint64_t bytes) { return charge(bytes / kBytesPerUnit + 1); }

  bool pay(std::uint64_t units) {
    used_ += units;
    if (units > left_) spent_ = true;
    left_ = spent_ ? 0 : left_ - units;
    return !spent_;
  }

  /// Spends one unit for each step, up to the first step that exceeds the budget.
  bool pay_steps(std::uint64_t steps) { return pay(std::min(steps, left_ + 1)); }

  bool spent() const { return spent_; }

  /// Units that were paid.
  std::uint64_t used() const { return used_; }

 private:
  static constexpr std::uint64_t kBytesPerUnit = 10;
  static constexpr std::uint64_t kWorkPerUnit = 4;
  static constexpr std::uint64_t kReportedWork = 1'000;  // some 50 µs

  /// Reports work to the fiber in which the evaluation runs, if any, which may end its slice.
  void report(std::uint64_t work) {
    unreported_ += work;
    if (unreported_ >= kReportedWork) count_work(std::exchange(unreported_, 0));
  }

  std::uint64_t left_;
  std::uint64_t work_left_;
  std::uint64_t used_ = 0;
  std::uint64_t unreported_ = 0;  // steps and units of work since the last report
  bool spent_ = false;
};

/// Equality of CEL: numbers by value whatever their types, lists and maps by their elements; values of different types
/// differ. False, and the budget spent, if there is too much to compare.
bool equal(const Value& a, const Value& b, Budget& budget);

/// True if two elements of such a list are the same one: in a map by their keys, else by their values.
bool same_element(const List& list, const Value& a, const Value& b, Budget& budget);

/// Orders two values: -1, 0, 1; nullopt: they have no order (other types, NaN).
std::optional<int> compare(const Value& a, const Value& b);

}  // namespace spillway::cel
