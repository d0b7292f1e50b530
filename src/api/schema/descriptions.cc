#include "api/schema/descriptions.h"

#include "base/check.h"

#include <algorithm>
#include <utility>

namespace spillway::api {

extern const std::string_view kDescriptionsText;

namespace {

constexpr std::string_view kEndOfName = ": ";

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool is_remark(std::string_view line) {
  return line.empty() || line.front() == '#';
}

/// "core/v1.Pod: text" or " spec: text", of the given type. The text is part of the program, hence the check.
Description parse_line(std::string_view type, std::string_view line) {
  const std::size_t end = line.find(kEndOfName);
  SPILLWAY_CHECK(end != std::string_view::npos);
  const std::string_view text = line.substr(end + kEndOfName.size());
  if (line.front() != ' ') return {line.substr(0, end), {}, text};
  return {type, line.substr(1, end - 1), text};
}

/// A type and the lines of its fields.
struct Block {
  std::string_view type;
  std::string_view text;
  std::string_view fields;
};

std::vector<Block> blocks_of(std::string_view text) {
  std::vector<Block> blocks;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (is_remark(line)) continue;
    if (line.front() != ' ') {
      const Description described = parse_line({}, line);
      blocks.push_back({described.type, described.text, text.substr(0, 0)});
    } else {
      SPILLWAY_CHECK(!blocks.empty());
      std::string_view& fields = blocks.back().fields;
      const char* begin = fields.empty() ? line.data() : fields.data();
      fields = {begin, static_cast<std::size_t>(line.data() + line.size() - begin)};
    }
  }
  std::ranges::sort(blocks, {}, &Block::type);
  return blocks;
}

const Block* find_block(std::string_view type) {
  static const std::vector<Block> blocks = blocks_of(kDescriptionsText);
  const auto found = std::ranges::lower_bound(blocks, type, {}, &Block::type);
  return found != blocks.end() && found->type == type ? &*found : nullptr;
}

std::string_view text_in(const Block& block, std::string_view field) {
  for (std::string_view rest = block.fields; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (is_remark(line)) continue;
    const Description described = parse_line(block.type, line);
    if (described.field == field) return described.text;
  }
  return {};
}

}  // namespace

std::string_view description_of(const Type& type) {
  const Block* block = find_block(type.name());
  return block != nullptr ? block->text : std::string_view();
}

std::string_view description_of(const Type& type, std::string_view field) {
  if (const Block* block = find_block(type.name()); block != nullptr) {
    if (const std::string_view text = text_in(*block, field); !text.empty()) return text;
  }
  for (const Field& inner : type.fields()) {
    if (!inner.inlined) continue;
    if (const std::string_view text = description_of(*inner.message, field); !text.empty()) return text;
  }
  return {};
}

std::vector<Description> all_descriptions() {
  std::vector<Description> all;
  std::string_view type;
  for (std::string_view rest = kDescriptionsText; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (is_remark(line)) continue;
    all.push_back(parse_line(type, line));
    type = all.back().type;
  }
  return all;
}

}  // namespace spillway::api
