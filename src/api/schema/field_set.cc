#include "api/schema/field_set.h"

#include <algorithm>
#include <charconv>

namespace spillway::api {
namespace {

constexpr std::string_view kSelf = ".";

/// `k:{"type":"Ready"}`: one key, one text, and nothing in them that could be spelled in another way.
bool is_plain_key(std::string_view text) {
  constexpr std::string_view kBegin = R"(k:{")";
  constexpr std::string_view kMiddle = R"(":")";
  constexpr std::string_view kEnd = R"("})";
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) return false;
  const std::size_t middle = text.find(kMiddle, kBegin.size());
  if (middle == std::string_view::npos || middle + kMiddle.size() + kEnd.size() > text.size()) return false;
  const auto is_plain = [](std::string_view part) {
    return std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
             c == '_' || c == '/';
    });
  };
  const std::size_t value = middle + kMiddle.size();
  return is_plain(text.substr(kBegin.size(), middle - kBegin.size())) &&
         is_plain(text.substr(value, text.size() - kEnd.size() - value));
}

/// The element in canonical spelling (keys sorted, no blanks), or an error.
Result<std::string> canonical_element(std::string_view text) {
  const auto unknown = [text] {
    return make_error(ErrorCode::kBadRequest, "not a path element of FieldsV1: \"{}\"", text);
  };
  if (text.size() < 2 || text[1] != ':') return unknown();
  const std::string_view body = text.substr(2);
  switch (text[0]) {
    case 'f':
      return std::string(text);
    case 'k':
    case 'v': {
      if (is_plain_key(text)) return std::string(text);
      const Result<Json> value = parse_json(body);
      if (!value || (text[0] == 'k' && !value->is_object())) return unknown();
      return fmt::format("{}:{}", text[0], to_text(*value));
    }
    case 'i': {
      std::int64_t index = 0;
      const auto [end, ec] = std::from_chars(body.data(), body.data() + body.size(), index);
      if (ec != std::errc{} || end != body.data() + body.size()) return unknown();
      return std::string(text);
    }
    default:
      return unknown();
  }
}

std::string readable(std::string_view element) {
  const std::string_view body = element.substr(2);
  if (element[0] == 'f') return fmt::format(".{}", body);
  if (element[0] == 'v') return fmt::format("[={}]", body);
  const Result<Json> keys = element[0] == 'k' ? parse_json(body) : Result<Json>(Json());
  if (!keys || !keys->is_object()) return fmt::format("[{}]", body);
  std::vector<std::string> pairs;
  for (const auto& [key, value] : *keys->if_object()) pairs.push_back(fmt::format("{}={}", key, to_text(value)));
  return fmt::format("[{}]", fmt::join(pairs, ","));
}

}  // namespace

Result<FieldSet> FieldSet::parse(const Json& fields_v1) {
  const JsonObject* object = fields_v1.if_object();
  if (object == nullptr) return make_error(ErrorCode::kBadRequest, "FieldsV1 is made of objects");
  FieldSet set;
  for (const auto& [key, below] : *object) {
    if (key == kSelf) {
      set.owned_ = true;
      continue;
    }
    SPILLWAY_TRY(element, canonical_element(key));
    SPILLWAY_TRY(child, parse(below));
    if (child.children_.empty()) child.owned_ = true;
    // In documents elements are usually sorted: each new one is the last.
    set.children_.insert_or_assign(set.children_.end(), std::move(element), std::move(child));
  }
  return set;
}

Json FieldSet::to_json() const {
  JsonObject::Members members;
  const bool says_self = owned_ && !children_.empty();
  members.reserve(children_.size() + (says_self ? 1 : 0));
  if (says_self) members.push_back({std::string(kSelf), Json::object()});
  for (const auto& [element, below] : children_) members.push_back({element, below.to_json()});
  JsonObject out;
  out.assign_unsorted(std::move(members));
  return Json(std::move(out));
}

FieldSet& FieldSet::child(std::string_view element) {
  const auto found = children_.find(element);
  return found != children_.end() ? found->second : children_[std::string(element)];
}

const FieldSet* FieldSet::find(std::string_view element) const {
  const auto found = children_.find(element);
  return found != children_.end() ? &found->second : nullptr;
}

void FieldSet::erase(std::string_view element) {
  const auto found = children_.find(element);
  if (found != children_.end()) children_.erase(found);
}

bool FieldSet::empty() const {
  return !owned_ &&
         std::all_of(children_.begin(), children_.end(), [](const auto& child) { return child.second.empty(); });
}

void FieldSet::add(const FieldSet& other) {
  owned_ = owned_ || other.owned_;
  for (const auto& [element, below] : other.children_) child(element).add(below);
}

void FieldSet::subtract(const FieldSet& other) {
  if (other.owned_) owned_ = false;
  for (const auto& [element, below] : other.children_) {
    const auto mine = children_.find(element);
    if (mine != children_.end()) mine->second.subtract(below);
  }
  tidy();
}

FieldSet FieldSet::intersection(const FieldSet& other) const {
  FieldSet out;
  out.owned_ = owned_ && other.owned_;
  for (const auto& [element, below] : children_) {
    const FieldSet* theirs = other.find(element);
    if (theirs != nullptr) out.children_.emplace(element, below.intersection(*theirs));
  }
  out.tidy();
  return out;
}

std::vector<std::string> FieldSet::paths(std::size_t most) const {
  std::vector<std::string> out;
  append_paths("", most, out);
  return out;
}

void FieldSet::append_paths(const std::string& here, std::size_t most, std::vector<std::string>& out) const {
  if (owned_ && out.size() < most) out.push_back(here.empty() ? std::string(kSelf) : here);
  for (const auto& [element, below] : children_) {
    if (out.size() >= most) return;
    below.append_paths(here + readable(element), most, out);
  }
}

void FieldSet::tidy() {
  std::erase_if(children_, [](const auto& child) { return !child.second.owned_ && child.second.children_.empty(); });
}

bool operator==(const FieldSet& a, const FieldSet& b) {
  return a.owned_ == b.owned_ && a.children_ == b.children_;
}

}  // namespace spillway::api
