#include "scenarios/schema/document.hpp"

#include "scenarios/schema/syntax.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace shoal::scenarios {
namespace {

/// Exception that ends the parse, because text after this problem may be misread.
struct stop_parsing {
  problem why;
};

class builder final : public YAML::EventHandler {
public:
  builder(std::string_view text, int set) : text_(text), set_(set) {
    for (std::size_t at = 0; at != std::string_view::npos; at = text.find('\n', at)) {
      if (!line_starts_.empty()) ++at;
      line_starts_.push_back(at);
    }
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(node_kind::null, mark, anchor), where(mark, 1));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(tag, mark);
    refuse_open_quote(mark);
    // yaml-cpp turns `\_` and `\N` into single bytes, which are not UTF-8.
    if (first_bad_byte(value) != std::string_view::npos)
      problems.push_back(
          {where(mark, 1),
           "with its escapes this is not UTF-8 text, or has a NUL: write the characters themselves",
           {}});
    node_ptr made = make(node_kind::scalar, mark, anchor);
    made->text = value;
    made->where.length = static_cast<int>(std::clamp<std::size_t>(value.size(), 1, 200));
    add(made, made->where);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const position here = where(mark, 1);
    const node_ptr target = anchor < anchors_.size() ? anchors_[anchor] : nullptr;
    if (!target) throw stop_parsing{{here, "alias of an unknown anchor", {}}};
    if (target->open)
      throw stop_parsing{{here, "this alias is inside the value that it names", {}}};
    count(target->weight, here);
    add(target, here);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(make(node_kind::sequence, mark, anchor));
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(tag, mark);
    open(make(node_kind::mapping, mark, anchor));
  }
  void OnMapEnd() override {
    apply_merges(*stack_.back().container);
    close();
  }

  node_ptr root;
  std::vector<problem> problems;

private:
  struct frame {
    node_ptr container;
    std::optional<entry> key; // key of a mapping that still waits for its value
    std::unordered_map<std::string, position> seen;
    position opened;
  };

  position where(const YAML::Mark& mark, int length) const {
    return {set_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1, length};
  }

  void refuse_tag(const std::string& tag, const YAML::Mark& mark) {
    if (!tag.empty() && tag != "?" && tag != "!")
      problems.push_back(
          {where(mark, 1), fmt::format("tag '{}': tags are not used in scenarios", tag), {}});
  }

  /// Rejects a quoted text without a closing quote, which yaml-cpp accepts at the end of the file.
  void refuse_open_quote(const YAML::Mark& mark) const {
    if (mark.line < 0 || static_cast<std::size_t>(mark.line) >= line_starts_.size()) return;
    std::size_t at = line_starts_[static_cast<std::size_t>(mark.line)] +
                     static_cast<std::size_t>(std::max(mark.column, 0));
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) { // skip an anchor or a tag
      at = text_.find_first_of(" \t\r\n", at);
      if (at != std::string_view::npos) at = text_.find_first_not_of(" \t\r\n", at);
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    const char quote = text_[at];
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\' && quote == '"')
        ++i;
      else if (text_[i] == quote && quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote)
        ++i;
      else if (text_[i] == quote)
        return;
    }
    throw stop_parsing{{where(mark, 1), "YAML syntax: this quote is never closed", {}}};
  }

  void count(std::uint64_t weight, const position& here) {
    nodes_ += weight;
    if (nodes_ > max_nodes)
      throw stop_parsing{
          {here,
           fmt::format("more than {} values, counting what aliases expand to", max_nodes),
           {}}};
  }

  node_ptr make(node_kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto made = std::make_shared<node>();
    made->kind = kind;
    made->where = where(mark, 1);
    count(1, made->where);
    if (anchor != YAML::NullAnchor) {
      if (anchors_.size() <= anchor) anchors_.resize(anchor + 1);
      anchors_[anchor] = made;
    }
    return made;
  }

  void open(node_ptr container) {
    container->open = true;
    const position here = container->where;
    if (stack_.size() >= max_nesting) too_deep(here);
    frame next;
    next.container = std::move(container);
    next.opened = here;
    stack_.push_back(std::move(next));
  }

  void close() {
    frame closed = std::move(stack_.back());
    stack_.pop_back();
    node& done = *closed.container;
    done.open = false;
    for (const node_ptr& item : done.items) measure(done, *item);
    for (const entry& item : done.entries) measure(done, *item.value);
    if (done.height > max_nesting) too_deep(closed.opened);
    add(closed.container, closed.opened);
  }

  static void measure(node& parent, const node& child) {
    parent.weight += child.weight;
    parent.height = std::max(parent.height, child.height + 1);
  }

  [[noreturn]] static void too_deep(const position& here) {
    throw stop_parsing{{here, fmt::format("nested deeper than {} levels", max_nesting), {}}};
  }

  /// Adds `value` to the open container. `here` is the value's position; for an alias, not the
  /// anchor's.
  void add(const node_ptr& value, const position& here) {
    if (stack_.empty()) {
      root = value;
      return;
    }
    frame& top = stack_.back();
    if (top.container->kind == node_kind::sequence) {
      top.container->items.push_back(value);
    } else if (!top.key) {
      if (value->kind != node_kind::scalar)
        throw stop_parsing{{here, "a key has to be plain text", {}}};
      top.key = entry{value->text, here, nullptr};
      top.key->where.length = value->where.length;
    } else {
      entry done = std::move(*top.key);
      top.key.reset();
      done.value = value;
      const auto [first, fresh] = top.seen.emplace(done.key, done.where);
      if (fresh) {
        top.container->entries.push_back(std::move(done));
      } else {
        problems.push_back({done.where,
                            fmt::format("duplicate key '{}'", done.key),
                            {fmt::format("first given in line {}, column {}", first->second.line,
                                         first->second.column)}});
      }
    }
  }

  void apply_merges(node& mapping) {
    const auto found = std::find_if(mapping.entries.begin(), mapping.entries.end(),
                                    [](const entry& item) { return item.key == "<<"; });
    if (found == mapping.entries.end()) return;
    const entry merge = std::move(*found);
    mapping.entries.erase(found);

    std::vector<node_ptr> sources{merge.value};
    if (merge.value->kind == node_kind::sequence) sources = merge.value->items;
    auto& seen = stack_.back().seen;
    for (const node_ptr& source : sources) {
      if (source->kind != node_kind::mapping) {
        problems.push_back({merge.where, "'<<' merges a mapping or a list of mappings", {}});
        continue;
      }
      count(source->weight, merge.where);
      for (const entry& item : source->entries)
        if (seen.emplace(item.key, item.where).second) mapping.entries.push_back(item);
    }
  }

  std::string_view text_;
  std::vector<std::size_t> line_starts_;
  int set_;
  std::vector<node_ptr> anchors_;
  std::vector<frame> stack_;
  std::uint64_t nodes_ = 0;
};

} // namespace

const entry* node::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const entry& item) { return item.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::size_t first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead == 0                     ? 0
                               : lead < 0x80                 ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || at + length > text.size()) return at;
    for (std::size_t i = 1; i < length; ++i)
      if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return at;
    at += length;
  }
  return std::string_view::npos;
}

document parse_document(std::string_view text, int set) {
  document out;
  const position start{set, 1, 1, 1};
  if (text.size() > max_file_bytes) {
    out.problems.push_back({start, fmt::format("longer than {} bytes", max_file_bytes), {}});
    return out;
  }
  if (const std::size_t wrong = first_bad_byte(text); wrong != std::string_view::npos) {
    const auto line =
        static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(wrong), '\n')) +
        1;
    out.problems.push_back({{set, line, 1, 1}, "this is not UTF-8 text", {}});
    return out;
  }
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3); // skip the byte order mark that some editors write
  builder handler(text, set);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(handler)) {
      out.root = handler.root;
      builder second(text, set);
      if (parser.HandleNextDocument(second) && second.root && second.root->kind != node_kind::null)
        handler.problems.push_back(
            {second.root->where, "a second document: a scenario is one document", {}});
    }
  } catch (const stop_parsing& stop) {
    handler.problems.push_back(stop.why);
    out.root = nullptr;
  } catch (const YAML::Exception& error) {
    position here = start;
    if (!error.mark.is_null())
      here = {set, std::max(error.mark.line, 0) + 1, std::max(error.mark.column, 0) + 1, 1};
    auto mistake = syntax_mistake(text, set);
    handler.problems.push_back(mistake ? std::move(*mistake)
                                       : problem{here, "YAML syntax: " + error.msg, {}});
    out.root = nullptr;
  } catch (const std::exception& error) {
    handler.problems.push_back({start, std::string("YAML syntax: ") + error.what(), {}});
    out.root = nullptr;
  }
  out.problems = std::move(handler.problems);
  if (out.problems.empty() && (!out.root || out.root->kind == node_kind::null)) {
    out.problems.push_back({start, "the file is empty", {}});
    out.root = nullptr;
  }
  return out;
}

} // namespace shoal::scenarios
