#include "yaml/yaml_document.h"

#include "base/utf8.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace spillway::yaml {
namespace {

using api::Json;

constexpr std::size_t kTextMax = 1024 * 1024;
constexpr int kValuesMax = 20'000;
constexpr int kDepthMax = 64;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<bool> boolean_of(std::string_view text) {
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"})) return false;
  return std::nullopt;
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  } else if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> number_of(std::string_view text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Result<Json> convert(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kDepthMax) return wrong(node, "is nested deeper than {} levels", kDepthMax);
    if (++values_ > kValuesMax) return wrong(node, "more than {} values; do aliases multiply?", kValuesMax);
    Origin& origin = origins_[path];
    origin.line = line_of(node);
    origin.column = node.Mark().column + 1;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json();
      case YAML::NodeType::Scalar:
        return scalar(node, origin);
      case YAML::NodeType::Sequence:
        return sequence(node, path, depth);
      case YAML::NodeType::Map:
        return mapping(node, path, depth);
    }
    return Json();
  }

  std::map<std::string, Origin, std::less<>> take_origins() { return std::move(origins_); }

 private:
  static int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

  template <typename... Args>
  Error wrong(const YAML::Node& node, fmt::format_string<Args...> format, Args&&... args) const {
    return invalid(fmt::format("{}:{}", file_, line_of(node)), format, std::forward<Args>(args)...);
  }

  Result<Json> scalar(const YAML::Node& node, Origin& origin) const {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return Json(text);  // quoted
    if (node.Tag() != "?" && node.Tag() != "tag:yaml.org,2002:str")
      return wrong(node, "tags are not read: {}", node.Tag());
    if (node.Tag() != "?") return Json(text);
    origin.text = text;
    if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json();
    if (const auto boolean = boolean_of(text)) return Json(*boolean);
    const std::string_view digits = text.starts_with('-') ? std::string_view(text).substr(1) : std::string_view(text);
    if (digits.starts_with("0o") || (digits.size() > 1 && digits.starts_with('0') && all_digits(digits))) {
      return wrong(node, "{} is octal for some readers of YAML and decimal for others; write it as a decimal number",
                   text);
    }
    if (const auto integer = integer_of(text)) return Json(*integer);
    if (const auto number = number_of(text)) return Json(*number);
    return Json(text);
  }

  Result<Json> sequence(const YAML::Node& node, const std::string& path, int depth) {
    Json list = Json::array();
    for (std::size_t i = 0; i < node.size(); ++i) {
      SPILLWAY_TRY(element, convert(node[i], fmt::format("{}[{}]", path, i), depth + 1));
      list.if_array()->push_back(std::move(element));
    }
    return list;
  }

  Result<Json> mapping(const YAML::Node& node, const std::string& path, int depth) {
    Json object = Json::object();
    std::map<std::string, int> lines;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) return wrong(member.first, "a key must be a string");
      const std::string& key = member.first.Scalar();
      if (key == "<<") return wrong(member.first, "merge keys are not read");
      const auto [first, fresh] = lines.emplace(key, line_of(member.first));
      if (!fresh) return wrong(member.first, "key \"{}\" is there twice; first in line {}", key, first->second);
      const std::string below = path.empty() ? key : fmt::format("{}[{}]", path, key);
      SPILLWAY_TRY(value, convert(member.second, below, depth + 1));
      origins_[below].line = line_of(member.first);
      origins_[below].column = member.first.Mark().column + 1;
      object[key] = std::move(value);
    }
    return object;
  }

  const std::string& file_;
  std::map<std::string, Origin, std::less<>> origins_;
  int values_ = 0;
};

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : *value.if_object()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& element : *value.if_array()) emit(out, element);
    out << YAML::EndSeq;
  } else if (const std::string* text = value.if_string()) {
    const bool ambiguous = text->empty() || boolean_of(*text) || number_of(*text) || integer_of(*text) ||
                           is_one_of(*text, {"~", "null", "Null", "NULL"});
    if (ambiguous) out << YAML::DoubleQuoted;
    out << *text;
  } else {
    out << api::to_text(value);
  }
}

/// Finds the beginnings of documents. Their content is passed over.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { lines_.push_back(mark.line + 1); }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}

  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}

  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}

  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}

  void OnSequenceEnd() override {}

  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}

  void OnMapEnd() override {}

  const std::vector<int>& lines() const { return lines_; }

 private:
  std::vector<int> lines_;
};

/// Parses by hand: for some texts YAML::LoadAll() never stops making documents. Throws YAML::Exception.
std::optional<int> line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  for (int tried = 0; tried < 2 && parser.HandleNextDocument(starts);) ++tried;
  if (starts.lines().size() < 2) return std::nullopt;
  return starts.lines()[1];
}

}  // namespace

Result<Document> parse(const std::string& file, const std::string& text) {
  if (text.size() > kTextMax) return invalid(file, "larger than {} bytes", kTextMax);
  if (const auto at = find_non_text(text)) {
    const auto line = std::ranges::count(std::string_view(text).substr(0, *at), '\n') + 1;
    return invalid(fmt::format("{}:{}", file, line), "expected UTF-8 text, found byte {:#04x}",
                   static_cast<unsigned char>(text[*at]));
  }
  YAML::Node root;
  try {
    if (const auto second = line_of_second_document(text)) {
      return invalid(fmt::format("{}:{}", file, *second), "expected one document, got more");
    }
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("{}:{}", file, error.mark.line + 1), "{}", error.msg);
  }
  Document document;
  Converter converter(file);
  try {
    SPILLWAY_TRY(value, converter.convert(root, "", 0));
    document.value = std::move(value);
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("{}:{}", file, error.mark.line + 1), "{}", error.msg);
  }
  document.origins = converter.take_origins();
  return document;
}

Result<Document> read_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::kNotFound, "cannot be opened", file};
  return read_stream(stream, file);
}

Result<Document> read_stream(std::istream& stream, const std::string& file) {
  std::string text(kTextMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return Error{ErrorCode::kNotFound, "cannot be read", file};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse(file, text);
}

std::string to_text(const Json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace spillway::yaml
