// Parsing through Boost.JSON's event parser, building our own values: the library checks the grammar, we keep the
// integers exact and notice repeated members.
#include "api/json.h"

#include <boost/json/basic_parser_impl.hpp>

#include <charconv>
#include <cmath>

namespace spillway::api {
namespace {

class Builder {
 public:
  constexpr static std::size_t max_object_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_array_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_key_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_string_size = static_cast<std::size_t>(-1);

  using error_code = boost::json::error_code;
  using string_view = boost::json::string_view;

  bool on_document_begin(error_code&) { return true; }

  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code&) {
    open_.push_back(Open{.is_object = true, .key = std::move(key_), .elements = {}, .members = {}});
    key_.clear();
    return true;
  }

  bool on_object_end(std::size_t, error_code&) {
    Open done = std::move(open_.back());
    open_.pop_back();
    JsonObject object;
    for (const std::string& key : object.assign_unsorted(std::move(done.members))) {
      duplicates.push_back(path_of(done.key) + key);
    }
    key_ = std::move(done.key);
    return add(Json(std::move(object)));
  }

  bool on_array_begin(error_code&) {
    open_.push_back(Open{.is_object = false, .key = std::move(key_), .elements = {}, .members = {}});
    key_.clear();
    return true;
  }

  bool on_array_end(std::size_t, error_code&) {
    Open done = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(done.key);
    return add(Json(std::move(done.elements)));
  }

  bool on_key_part(string_view part, std::size_t, error_code&) {
    key_.append(part.data(), part.size());
    return true;
  }

  bool on_key(string_view part, std::size_t, error_code&) {
    key_.append(part.data(), part.size());
    return true;
  }

  bool on_string_part(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_string(string_view part, std::size_t, error_code&) {
    text_.append(part.data(), part.size());
    return add(Json(std::exchange(text_, {})));
  }

  bool on_number_part(string_view part, error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_int64(std::int64_t value, string_view, error_code&) {
    text_.clear();
    return add(Json(value));
  }

  bool on_uint64(std::uint64_t value, string_view, error_code&) {
    text_.clear();
    return add(Json(value));
  }

  /// From the text, because the parser's own conversion may miss the nearest double.
  bool on_double(double value, string_view part, error_code& error) {
    text_.append(part.data(), part.size());
    std::from_chars(text_.data(), text_.data() + text_.size(), value);
    text_.clear();
    if (!std::isfinite(value)) {
      error = boost::json::error::exponent_overflow;
      return false;
    }
    return add(Json(value));
  }

  bool on_bool(bool value, error_code&) { return add(Json(value)); }

  bool on_null(error_code&) { return add(Json()); }

  bool on_comment_part(string_view, error_code&) { return true; }

  bool on_comment(string_view, error_code&) { return true; }

  Json root;
  std::vector<std::string> duplicates;

 private:
  struct Open {
    bool is_object;
    std::string key;  // under which this container will be added to its parent
    Json::Array elements;
    JsonObject::Members members;
  };

  bool add(Json value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().members.push_back({std::exchange(key_, {}), std::move(value)});
    } else {
      open_.back().elements.push_back(std::move(value));
    }
    return true;
  }

  /// "spec.containers[1]." for a container that will be added under `key` to the innermost open one.
  std::string path_of(const std::string& key) const {
    std::string path;
    const auto step = [&path](const Open* parent, const std::string& name) {
      if (parent == nullptr) return;
      if (!parent->is_object) {
        path += fmt::format("[{}]", parent->elements.size());
      } else {
        if (!path.empty()) path += '.';
        path += name;
      }
    };
    for (std::size_t i = 1; i < open_.size(); ++i) step(&open_[i - 1], open_[i].key);
    step(open_.empty() ? nullptr : &open_.back(), key);
    if (!path.empty()) path += '.';
    return path;
  }

  std::vector<Open> open_;
  std::string key_;
  std::string text_;
};

constexpr std::size_t kNestingMax = 1000;

}  // namespace

Result<Json> parse_json(std::string_view text, std::vector<std::string>* duplicates) {
  boost::json::parse_options options;
  options.max_depth = kNestingMax;
  boost::json::basic_parser<Builder> parser(options);
  boost::json::error_code error;
  const std::size_t consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error && consumed < text.size() && text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos) {
    error = boost::json::error::extra_data;
  }
  if (error) return make_error(ErrorCode::kBadRequest, "invalid JSON at byte {}: {}", consumed, error.message());
  if (duplicates != nullptr) *duplicates = std::move(parser.handler().duplicates);
  return std::move(parser.handler().root);
}

}  // namespace spillway::api
