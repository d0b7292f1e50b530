// Converts between values and the bytes of a record: one list of members per type defines its form. Numbers have seven
// bits a byte, lowest first; a set top bit says that more follow. A module that records instantiates Writer and Reader
// with a type of its own, in whose namespace the lists of members are found. Thread: any (pure). Bounds: a value that
// is read holds no more elements than its record has bytes.
#pragma once

#include "api/text/quantity.h"
#include "base/bytes.h"
#include "base/time.h"

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::recording {

template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

template <typename Whose>
class Writer {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

  std::string take() { return std::move(text_); }

 private:
  void put_number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7U) text_ += static_cast<char>(number | 0x80U);
    text_ += static_cast<char>(number);
  }

  template <typename T>
    requires std::integral<T> || std::is_enum_v<T>
  void put(T number) {
    put_number(static_cast<std::uint64_t>(number));
  }

  void put(double number) { put(std::bit_cast<std::uint64_t>(number)); }

  void put(float number) { put(std::bit_cast<std::uint32_t>(number)); }

  void put(Bytes bytes) { put(bytes.count()); }

  void put(Duration duration) { put(duration.count()); }

  void put(WallTime time) { put(time.time_since_epoch().count()); }

  void put(Instant time) { put(time.time_since_epoch().count()); }

  void put(const std::string& text) {
    put(text.size());
    text_ += text;
  }

  void put(const api::Quantity& quantity) {
    put(quantity.format());
    put(quantity.to_string());
  }

  template <typename T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }

  template <typename T>
  void put(const std::shared_ptr<const T>& value) {
    put(value != nullptr);
    if (value) put(*value);
  }

  template <typename T>
    requires requires(const T& list) {
      typename T::value_type;
      list.size();
      list.begin();
    }
  void put(const T& values) {
    put(values.size());
    for (const auto& each : values) put(each);
  }

  template <typename T, std::size_t kSize>
  void put(const std::array<T, kSize>& values) {
    for (const T& each : values) put(each);
  }

  template <typename A, typename B>
  void put(const std::pair<A, B>& both) {
    put(both.first);
    put(both.second);
  }

  template <typename... Ts>
  void put(const std::variant<Ts...>& value) {
    put(value.index());
    std::visit([this](const auto& each) { this->put(each); }, value);
  }

  template <typename T>
    requires std::is_class_v<T> && (!requires { typename T::value_type; })
  void put(const T& value) {
    describe(*this, value);
  }

  std::string text_;
};

template <typename Whose>
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

  /// Marks the input as invalid.
  void fail() { good_ = false; }

  /// True if all fields were read, and all were valid.
  bool is_done() const { return good_ && rest_.empty(); }

 private:
  std::uint64_t number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return number;
    }
    good_ = false;
    return 0;
  }

  template <std::integral T>
  void get(T& value) {
    const std::uint64_t bits = number();
    value = static_cast<T>(bits);
    if constexpr (std::unsigned_integral<T>) good_ = good_ && static_cast<std::uint64_t>(value) == bits;
  }

  /// Reads an enumerator; its values count from 0 to last_of(value).
  template <typename T>
    requires std::is_enum_v<T>
  void get(T& value) {
    const std::uint64_t bits = number();
    good_ = good_ && bits <= static_cast<std::uint64_t>(last_of(*this, T{}));
    if (good_) value = static_cast<T>(bits);
  }

  void get(double& value) { value = std::bit_cast<double>(number()); }

  void get(float& value) {
    std::uint32_t bits = 0;
    get(bits);
    value = std::bit_cast<float>(bits);
  }

  void get(Bytes& value) { value = Bytes{static_cast<std::int64_t>(number())}; }

  void get(Duration& value) { value = Duration(static_cast<std::int64_t>(number())); }

  void get(WallTime& time) { time = WallTime(WallTime::duration(static_cast<std::int64_t>(number()))); }

  void get(Instant& time) { time = Instant(Instant::duration(static_cast<std::int64_t>(number()))); }

  void get(std::string& text) {
    const std::uint64_t size = number();
    if (!fits(size)) return;
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }

  void get(api::Quantity& quantity) {
    api::Quantity::Format format{};
    std::string text;
    get(format);
    get(text);
    const auto parsed = api::parse_quantity(text);
    good_ = good_ && parsed.has_value();
    if (!good_) return;
    // Small amounts are spelled alike in all formats.
    quantity = parsed->format() == format ? *parsed : api::Quantity::of_units(parsed->value(), format);
  }

  template <typename T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there && good_) get(value.emplace());
  }

  template <typename T>
  void get(std::shared_ptr<const T>& value) {
    bool there = false;
    get(there);
    if (!there || !good_) return;
    auto read = std::make_shared<T>();
    get(*read);
    value = std::move(read);
  }

  template <typename T>
  void get(std::vector<T>& values) {
    values.clear();
    for (std::uint64_t count = elements(); count > 0 && good_; --count) get(values.emplace_back());
  }

  template <typename T, typename... More>
  void get(std::set<T, More...>& values) {
    values.clear();
    for (std::uint64_t count = elements(); count > 0 && good_; --count) {
      T value{};
      get(value);
      values.insert(std::move(value));
    }
  }

  template <typename K, typename V, typename... More>
  void get(std::map<K, V, More...>& values) {
    values.clear();
    for (std::uint64_t count = elements(); count > 0 && good_; --count) {
      std::pair<K, V> entry{};
      get(entry);
      values.insert(std::move(entry));
    }
  }

  template <typename T, std::size_t kSize>
  void get(std::array<T, kSize>& values) {
    for (T& each : values) get(each);
  }

  template <typename A, typename B>
  void get(std::pair<A, B>& both) {
    get(both.first);
    get(both.second);
  }

  template <typename... Ts>
  void get(std::variant<Ts...>& value) {
    const std::uint64_t index = number();
    good_ = good_ && index < sizeof...(Ts);
    std::uint64_t at = 0;
    ((good_ && at++ == index ? get(value.template emplace<Ts>()) : void()), ...);
  }

  template <typename T>
    requires std::is_class_v<T> && (!requires { typename T::value_type; })
  void get(T& value) {
    describe(*this, value);
  }

  std::uint64_t elements() {
    const std::uint64_t count = number();
    return fits(count) ? count : 0;
  }

  /// Every element takes a byte at least.
  bool fits(std::uint64_t count) { return good_ = good_ && count <= rest_.size(); }

  std::string_view rest_;
  bool good_ = true;
};

/// True if describe() fills its value, false if it writes it.
template <typename Io>
inline constexpr bool kReads = false;

template <typename Whose>
inline constexpr bool kReads<Reader<Whose>> = true;

}  // namespace spillway::recording
