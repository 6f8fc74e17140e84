#include "kernels/learn/task_data.hpp"

#include "kernels/base/text_fields.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace shoal::learn {

namespace {

/// The places of the text and of the label among the columns.
struct columns {
  std::size_t label = 0, text = 1;
  bool named = false;
};

result<columns> columns_of(std::string_view first_line, const std::string& name) {
  const auto fields = shoal::split(first_line, '\t');
  const auto place = [&](std::string_view of) {
    return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), of) - fields.begin());
  };
  columns out;
  if (place("text") == fields.size()) return out;
  out.named = true;
  out.text = place("text");
  out.label = std::min(place("label"), place("category"));
  if (out.label == fields.size())
    return failure{"data: '" + name +
                   "' has a column 'text' but no column 'label' or 'category'; name one so"};
  return out;
}

class reader {
public:
  reader(const std::string& name, task_kind kind, const std::set<std::string>& outside)
      : name_(name), kind_(kind), outside_(outside) {}

  result<labelled_file> read(std::string_view contents) {
    if (contents.starts_with("\xef\xbb\xbf")) contents.remove_prefix(3);
    std::size_t number = 0;
    for (auto line : shoal::split(contents, '\n')) {
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (number == 1 && kind_ == task_kind::classification) {
        const auto found = columns_of(line, name_);
        if (!found) return failure{found.error()};
        columns_ = *found;
        if (columns_.named) continue;
      }
      if (line.empty())
        finish();
      else
        take(line, number);
    }
    finish();
    if (out_.texts.empty()) return failure{"data: '" + name_ + "' has no labelled text"};
    if (100 * out_.left_out > used_)
      return failure{"data: '" + name_ + "': line " + std::to_string(first_wrong_) +
                     " has too few columns, and so have " + std::to_string(out_.left_out - 1) +
                     " others; a tab separates " +
                     (kind_ == task_kind::ner ? "a word and its tag" : "a label and its text")};
    return std::move(out_);
  }

private:
  void finish() {
    if (!now_.words.empty()) out_.texts.push_back(std::move(now_));
    now_ = {};
  }

  void take(std::string_view line, std::size_t number) {
    const auto fields = shoal::split(line, '\t');
    const auto most = kind_ == task_kind::ner ? 1 : std::max(columns_.label, columns_.text);
    if (fields.size() <= most) {
      ++out_.left_out;
      if (first_wrong_ == 0) first_wrong_ = number;
      return;
    }
    ++used_;
    if (kind_ == task_kind::classification) {
      now_.words = {std::string(fields[columns_.text])};
      now_.tags = {std::string(fields[columns_.label])};
      return finish();
    }
    now_.words.emplace_back(fields[0]);
    std::string tag(fields[1]);
    now_.tags.push_back(tag.empty() || outside_.count(tag) > 0 ? "O" : std::move(tag));
  }

  const std::string& name_;
  task_kind kind_;
  const std::set<std::string>& outside_;
  columns columns_;
  labelled_text now_;
  labelled_file out_;
  std::size_t used_ = 0, first_wrong_ = 0;
};

} // namespace

result<labelled_file> parse_labelled(std::string_view contents, const std::string& name,
                                     task_kind kind, const std::set<std::string>& outside) {
  return reader(name, kind, outside).read(contents);
}

result<labelled_file> read_labelled(const std::string& path, task_kind kind,
                                    const std::set<std::string>& outside) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{"data: '" + path + "' cannot be opened: " + std::strerror(errno)};
  const std::string contents{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return failure{"data: '" + path + "' cannot be read"};
  return parse_labelled(contents, path, kind, outside);
}

std::vector<std::string> labels_of(std::span<const labelled_text> texts, task_kind kind) {
  std::set<std::string> found;
  for (const auto& text : texts) found.insert(text.tags.begin(), text.tags.end());
  std::vector<std::string> out;
  if (kind == task_kind::ner) {
    out.emplace_back("O");
    found.erase("O");
  }
  out.insert(out.end(), found.begin(), found.end());
  return out;
}

result<std::vector<albert_sample>> samples_of(std::span<const labelled_text> texts, task_kind kind,
                                              std::span<const std::string> labels,
                                              const pair_vocabulary& vocabulary,
                                              std::int64_t length) {
  std::vector<albert_sample> out;
  for (const auto& text : texts) {
    auto& sample = out.emplace_back();
    sample.order = albert_sample::no_label;
    sample.tokens.push_back(vocabulary.start);
    sample.labels.push_back(albert_sample::no_label);
    for (std::size_t w = 0; w < text.words.size(); ++w) {
      const auto found = std::find(labels.begin(), labels.end(), text.tags[w]);
      if (found == labels.end())
        return failure{"data: the training texts have no label '" + text.tags[w] + "'"};
      const auto label = static_cast<token_id>(found - labels.begin());
      std::vector<token_id> tokens;
      if (w > 0 && vocabulary.space_between_words) tokens = vocabulary.codec->encode(" ");
      const auto first = tokens.size();
      const auto word = vocabulary.codec->encode(text.words[w]);
      tokens.insert(tokens.end(), word.begin(), word.end());
      if (kind == task_kind::classification) {
        sample.order = label;
        tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(length) - 2));
      }
      if (sample.tokens.size() + tokens.size() + 1 > static_cast<std::size_t>(length)) break;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        sample.tokens.push_back(tokens[i]);
        sample.labels.push_back(kind == task_kind::ner && i == first ? label
                                                                     : albert_sample::no_label);
      }
    }
    sample.tokens.push_back(vocabulary.separator);
    sample.labels.push_back(albert_sample::no_label);
    sample.first = sample.tokens.size();
  }
  return out;
}

} // namespace shoal::learn
