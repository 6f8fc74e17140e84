#include "scenarios/schema/syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace shoal::scenarios {
namespace {

constexpr auto npos = std::string_view::npos;

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && (is_space(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// The index after the quoted text that begins at `at`. npos if it does not end in this line.
std::size_t after_quote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    const bool escapes = text[i] == '\\' && quote == '"';
    const bool doubled =
        text[i] == quote && quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
    if (escapes || doubled)
      ++i;
    else if (text[i] == quote)
      return i + 1;
  }
  return npos;
}

bool quotes(char c) {
  return c == '"' || c == '\'';
}

/// The part before a comment. A '#' is one at the start, or after a space outside quotes.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool first = i == 0 || is_space(text[i - 1]);
    if (text[i] == '#' && first) return text.substr(0, i);
    if (quotes(text[i]) && (first || text[i - 1] == '[' || text[i - 1] == '{' ||
                            text[i - 1] == ',' || text[i - 1] == ':')) {
      const auto end = after_quote(text, i);
      if (end == npos) return text;
      i = end - 1;
    }
  }
  return text;
}

/// The index of the ':' that ends a key. npos if the text is no key and value.
std::size_t key_end(std::string_view text) {
  std::size_t i = 0;
  if (!text.empty() && quotes(text[0])) i = after_quote(text, 0);
  for (; i < text.size(); ++i)
    if (text[i] == ':' && (i + 1 == text.size() || is_space(text[i + 1]))) return i;
  return npos;
}

/// Removes an anchor, as in '&home'.
std::string_view without_anchor(std::string_view value) {
  if (!value.starts_with('&')) return value;
  const auto end = value.find_first_of(" \t");
  return end == npos ? std::string_view{} : trimmed(value.substr(end));
}

std::string spaces(std::size_t count) {
  return count == 0 ? "no spaces" : fmt::format("{} space{}", count, count == 1 ? "" : "s");
}

class scanner {
public:
  explicit scanner(int set) : set_(set) {}

  std::optional<problem> scan(std::string_view text) {
    for (std::size_t at = 0; at <= text.size() && !found_;) {
      const auto end = std::min(text.find('\n', at), text.size());
      ++number_;
      one_line(text.substr(at, end - at));
      at = end + 1;
    }
    if (!found_ && !open_.empty()) never_closed(open_.back());
    return std::move(found_);
  }

private:
  struct block {
    std::size_t indent;
    int line;          ///< the first line of the block
    bool list;         ///< the block has items, not keys
    int last_line;     ///< the line of the last entry
    bool has_value;    ///< the last entry has a value
    std::string entry; ///< the last entry's text
  };
  /// The lines after '|' or '>'.
  struct text_block {
    std::size_t key_indent;
    bool fixed;         ///< the mark says how far the lines are indented
    int line;           ///< the first one; 0: none yet
    std::size_t indent; ///< the indentation of the first one
  };
  struct place_of_text {
    int line;
    std::size_t column;
  };
  struct bracket {
    char which;
    int line;
    std::size_t column;
    std::size_t indent; ///< the indentation of the line
  };

  void say(int line, std::size_t column, std::string what, std::vector<std::string> notes = {}) {
    found_ = problem{{set_, line, static_cast<int>(column) + 1, 1},
                     "YAML syntax: " + std::move(what),
                     std::move(notes)};
  }

  void never_closed(const bracket& what) {
    say(what.line, what.column, fmt::format("this '{}' is never closed", what.which));
  }

  void one_line(std::string_view line) {
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    if (in_quote_) return end_quote(line);
    const auto text = trimmed(without_comment(line));
    if (text_ && (line.size() == indent || indent > text_->key_indent)) {
      if (line.size() > indent) text_line(indent);
      return;
    }
    text_.reset();
    if (text.empty()) return;
    if (!open_.empty()) {
      // A key that is no deeper than the line of the bracket does not belong to what is in it.
      if (indent <= open_.back().indent && key_end(text) != npos && text.back() != ',' &&
          text.back() != '}' && text.back() != ']')
        return never_closed(open_.back());
      return brackets(line, indent, indent);
    }
    if (line[indent] == '\t')
      return say(number_, indent, "a tab at the start of the line: indent with spaces");
    if (text == "---" || text == "...") return blocks_.clear();
    if (indent == 0 && text.front() == '%') return;
    entry(line, indent, indent);
  }

  void text_line(std::size_t indent) {
    if (text_->line == 0) {
      text_->line = number_;
      text_->indent = indent;
    }
    if (!text_->fixed && indent < text_->indent)
      say(number_, indent,
          fmt::format("{} before this line: neither as many as the text above has nor as few as "
                      "its key",
                      spaces(indent)),
          {fmt::format("the text begins in line {} with {}", text_->line, spaces(text_->indent))});
  }

  /// An item or a key that begins at `column`.
  void entry(std::string_view line, std::size_t column, std::size_t indent) {
    const auto text = trimmed(without_comment(line.substr(column)));
    const bool item = text == "-" || text.starts_with("- ");
    const auto colon = item ? npos : key_end(text);
    const bool key = colon != npos && text.front() != '{' && text.front() != '[';
    if (!place(text, column, item, key)) return;
    if (item) {
      auto& own = blocks_.back();
      const auto next = line.find_first_not_of(' ', column + 1);
      own.has_value = text != "-";
      if (text == "-" || next == npos) return;
      // The text behind the dash is a block inside this one, which waits for it.
      own.has_value = false;
      return entry(line, next, indent);
    }
    if (!key) return value(line, column, indent);
    const auto content = without_anchor(trimmed(text.substr(colon + 1)));
    blocks_.back().has_value = !content.empty();
    if (content.empty()) return;
    value(line, static_cast<std::size_t>(content.data() - line.data()), indent);
  }

  /// Finds the block to which an entry belongs. Returns false if the entry is a mistake or the rest
  /// of a text of several lines.
  bool place(std::string_view text, std::size_t column, bool item, bool key) {
    const block* left = nullptr;
    block last{};
    while (!blocks_.empty() && blocks_.back().indent > column) {
      last = std::move(blocks_.back());
      left = &last;
      blocks_.pop_back();
    }
    // A list may stand at the indentation of its key, and ends with the next key.
    if (key && blocks_.size() > 1 && blocks_.back().list && blocks_.back().indent == column &&
        blocks_[blocks_.size() - 2].indent == column)
      blocks_.pop_back();
    if (blocks_.empty()) {
      if (left != nullptr) return between(*left, nullptr, column), false;
      if (stray_) {
        if (!key && !item) return false; // the next line of a plain text
        say(stray_->line, stray_->column, "a key with ': ' and a value is missing here");
        return false;
      }
      if (!key && !item && std::string_view("{[\"'&*!|>").find(text.front()) == npos)
        stray_ = place_of_text{number_, column};
      open_block(text, column, item, key);
      return true;
    }
    auto& top = blocks_.back();
    if (top.indent < column) {
      if (left != nullptr) return between(*left, &top, column), false;
      if (!top.has_value) return open_block(text, column, item, key), true;
      if (!key && !item) return false; // the next line of a plain text
      say(number_, column,
          fmt::format("this is indented deeper than '{}' in line {}, which has a value already",
                      top.entry, top.last_line),
          {fmt::format("the block of line {} has {} before its entries", top.last_line,
                       spaces(top.indent))});
      return false;
    }
    if (top.list && item) return update(top, text), true;
    if (!top.list && key) return update(top, text), true;
    if (!top.list && item && !top.has_value) return open_block(text, column, item, key), true;
    wrong_kind(top, text, column, item);
    return false;
  }

  void wrong_kind(const block& in, std::string_view text, std::size_t column, bool item) {
    const std::vector<std::string> began{fmt::format("the block begins in line {}", in.line)};
    if (in.list) return say(number_, column, "a list goes on with '- ' before each item", began);
    if (item) return say(number_, column, "a list item among keys", began);
    const auto colon = text.find(':');
    if (colon != npos && colon + 1 < text.size())
      return say(number_, column + colon,
                 fmt::format("a space is missing after the ':' of '{}'", text.substr(0, colon)));
    say(number_, column, "a key with ': ' and a value is missing here", began);
  }

  void between(const block& left, const block* under, std::size_t column) {
    std::vector<std::string> notes{
        fmt::format("the block begins in line {} with {}", left.line, spaces(left.indent))};
    if (under != nullptr)
      notes.push_back(fmt::format("the block around it begins in line {} with {}", under->line,
                                  spaces(under->indent)));
    say(number_, column,
        fmt::format("{} before this line: no block has that indentation", spaces(column)),
        std::move(notes));
  }

  static std::string shortened(std::string_view text) {
    if (text.size() <= 40) return std::string(text);
    std::size_t end = 40;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end)) + "…";
  }

  void open_block(std::string_view text, std::size_t column, bool item, bool key) {
    if (!blocks_.empty()) blocks_.back().has_value = true;
    if (!item && !key) return; // the value itself
    blocks_.push_back({column, number_, item, number_, false, shortened(text)});
  }

  void update(block& own, std::string_view text) const {
    own.last_line = number_;
    own.entry = shortened(text);
    own.has_value = false;
  }

  /// A value that begins at `column`: a text, a quoted text, brackets, or the mark of a text block.
  void value(std::string_view line, std::size_t column, std::size_t indent) {
    const char first = line[column];
    if (first == '[' || first == '{') return brackets(line, column, indent);
    if (quotes(first)) {
      const auto end = after_quote(line, column);
      if (end == npos) {
        in_quote_ = bracket{first, number_, column, indent};
        return;
      }
      const auto more = trimmed(without_comment(line.substr(end)));
      if (!more.empty() && more.front() != ':')
        say(number_, end, "this text stands behind the closing quote");
      return;
    }
    if (first == '|' || first == '>') {
      const bool fixed = line.find_first_of("123456789", column) != npos; // as in '|2'
      text_ = text_block{blocks_.empty() ? 0 : blocks_.back().indent, fixed, 0, 0};
      return;
    }
    const auto text = trimmed(without_comment(line.substr(column)));
    if (const auto colon = key_end(text); colon != npos && !text.starts_with('*'))
      say(number_, column + colon,
          "a second ':' in one value: put the value in quotes, or the second key in a line of its "
          "own");
  }

  /// Follows brackets and quotes of `line` from `from` on.
  void brackets(std::string_view line, std::size_t from, std::size_t indent) {
    const auto end = static_cast<std::size_t>(without_comment(line).size());
    for (std::size_t i = from; i < end; ++i) {
      const char c = line[i];
      const bool begins = i == 0 || is_space(line[i - 1]) || line[i - 1] == '[' ||
                          line[i - 1] == '{' || line[i - 1] == ',';
      if (quotes(c) && begins) {
        const auto after = after_quote(line, i);
        if (after == npos) {
          in_quote_ = bracket{c, number_, i, indent};
          return;
        }
        i = after - 1;
      } else if (c == '[' || c == '{') {
        open_.push_back({c, number_, i, indent});
      } else if (c == ']' || c == '}') {
        if (open_.empty())
          return say(number_, i, fmt::format("no bracket is open for this '{}'", c));
        const auto opened = open_.back();
        if ((opened.which == '[') != (c == ']'))
          return say(
              number_, i, fmt::format("this '{}' meets a '{}'", c, opened.which),
              {fmt::format("which line {}, column {} opens", opened.line, opened.column + 1)});
        open_.pop_back();
        if (open_.empty()) {
          const auto more = trimmed(without_comment(line.substr(i + 1)));
          if (!more.empty())
            say(number_, i + 1, fmt::format("this text stands behind the closing '{}'", c));
          return;
        }
      }
    }
  }

  /// The next line of a quoted text.
  void end_quote(std::string_view line) {
    const char quote = in_quote_->which;
    const auto end = after_quote(std::string(1, quote) + std::string(line), 0);
    if (end == npos) return;
    const auto indent = in_quote_->indent;
    in_quote_.reset();
    if (!open_.empty()) brackets(line, end - 1, indent);
  }

  int set_;
  int number_ = 0;
  std::vector<block> blocks_;
  std::vector<bracket> open_;
  std::optional<bracket> in_quote_;
  std::optional<place_of_text> stray_; // a text where the first key should be
  std::optional<text_block> text_;
  std::optional<problem> found_;
};

} // namespace

std::optional<problem> syntax_mistake(std::string_view text, int set) {
  return scanner(set).scan(text);
}

} // namespace shoal::scenarios
