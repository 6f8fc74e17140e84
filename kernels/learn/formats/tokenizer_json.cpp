#include "kernels/learn/formats/tokenizer_json.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "kernels/learn/formats/json_words.hpp"
#include "kernels/learn/formats/tokenizer_regexes.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace shoal::learn {

namespace {

using json = nlohmann::json;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;
constexpr int deepest_sequence = 8;

std::string shown(std::string_view text) {
  std::string out(text.substr(0, 60));
  while (!unicode::is_valid(out)) out.pop_back();
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return out;
}

/// Reads the parts of one file. The first error stays in `why`, and what is read after it does not
/// matter. Functions throw json::exception for a missing key or a value of another type.
class reader {
public:
  std::string why;

  void refuse(const std::string& reason) {
    if (why.empty()) why = reason;
  }

  static const std::string& text_at(const json& from, const char* key) {
    return from.at(key).get_ref<const std::string&>();
  }
  static std::string text_or(const json& from, const char* key, const char* other) {
    const auto found = from.find(key);
    return found == from.end() || found->is_null() ? other : found->get_ref<const std::string&>();
  }
  static bool flag_or(const json& from, const char* key, bool other) {
    const auto found = from.find(key);
    return found == from.end() || found->is_null() ? other : found->get_ref<const bool&>();
  }
  static const json::array_t& array_at(const json& from, const char* key) {
    return from.at(key).get_ref<const json::array_t&>();
  }
  /// Whether the file has this part.
  static bool has(const json& file, const char* part) {
    const auto found = file.find(part);
    return found != file.end() && !found->is_null();
  }

  void normalizers(const json& from, std::vector<normalizer_step>& to, int depth = 0) {
    using enum normalizer_kind;
    static const std::map<std::string, normalizer_kind> plain{
        {"Nmt", nmt},   {"NFC", nfc},   {"NFD", nfd},
        {"NFKC", nfkc}, {"NFKD", nfkd}, {"Lowercase", lowercase}};
    const auto& type = text_at(from, "type");
    if (type == "Sequence") {
      if (depth == deepest_sequence)
        return refuse("has too many sequences of normalizers inside each other");
      for (const auto& each : array_at(from, "normalizers")) normalizers(each, to, depth + 1);
    } else if (const auto known = plain.find(type); known != plain.end()) {
      to.push_back({known->second, {}, {}});
    } else if (type == "Replace") {
      to.push_back(replacement(from));
    } else if (type == "Prepend") {
      to.push_back({prepend, {}, text_at(from, "prepend")});
    } else {
      refuse("has the normalizer '" + shown(type) + "', which Shoal does not know");
    }
  }

  void splitters(const json& from, std::vector<splitter>& to, int depth = 0) {
    const auto& type = text_at(from, "type");
    splitter out;
    if (type == "Sequence") {
      if (depth == deepest_sequence)
        return refuse("has too many sequences of pre-tokenizers inside each other");
      for (const auto& each : array_at(from, "pretokenizers")) splitters(each, to, depth + 1);
      return;
    }
    if (type == "Metaspace") {
      out.kind = splitter_kind::metaspace;
      metaspace(from, out.mark, out.prepend);
      out.cut = flag_or(from, "split", true);
    } else if (type == "Digits") {
      out.kind = splitter_kind::digits;
      out.individual = flag_or(from, "individual_digits", false);
    } else if (type == "Punctuation") {
      out.kind = splitter_kind::punctuation;
      if (const auto how = text_or(from, "behavior", "Isolated"); how != "Isolated")
        return refuse("has the pre-tokenizer Punctuation with the behavior '" + shown(how) +
                      "'; only Isolated is supported");
    } else if (type == "ByteLevel") {
      out.kind = splitter_kind::byte_level;
      out.add_prefix_space = flag_or(from, "add_prefix_space", true);
      out.cut = flag_or(from, "use_regex", true);
    } else if (type == "WhitespaceSplit") {
      out.kind = splitter_kind::whitespace;
    } else {
      return refuse("has the pre-tokenizer '" + shown(type) + "', which Shoal does not know");
    }
    to.push_back(std::move(out));
  }

  void post_processor(const json& from, tokenizer_description& to, int depth = 0) {
    const auto& type = text_at(from, "type");
    if (type == "Sequence") {
      if (depth == deepest_sequence)
        return refuse("has too many sequences of post-processors inside each other");
      for (const auto& each : array_at(from, "processors")) post_processor(each, to, depth + 1);
    } else if (type == "TemplateProcessing") {
      if (!to.single.empty()) return refuse("has two post-processors of type TemplateProcessing");
      std::map<std::string, std::vector<token_id>> ids;
      for (const auto& [name, token] : from.at("special_tokens").items())
        for (const auto& id : array_at(token, "ids"))
          ids[name].push_back(whole_number<std::uint32_t>(id));
      to.single = template_parts(array_at(from, "single"), ids);
      to.pair = template_parts(array_at(from, "pair"), ids);
      if (!has_once(to.single, template_part::kind::first) ||
          has_once(to.single, template_part::kind::second))
        refuse("has a template for one text that has not the text A once, and B not at all");
      if (!to.pair.empty() && !(has_once(to.pair, template_part::kind::first) &&
                                has_once(to.pair, template_part::kind::second)))
        refuse("has a template for pairs that has not the texts A and B once each");
    } else if (type != "ByteLevel") { // ByteLevel changes offsets, and no tokens
      refuse("has the post-processor '" + shown(type) + "', which Shoal does not know");
    }
  }

  void decoder(const json& from, tokenizer_description& to) {
    const auto& type = text_at(from, "type");
    if (type == "Metaspace") {
      auto prepend = splitter::prefix::always;
      metaspace(from, to.decoder_mark, prepend);
      to.decoder = decoder_kind::metaspace;
      to.decoder_drops_first = prepend != splitter::prefix::never;
    } else if (type == "ByteLevel") {
      to.decoder = decoder_kind::byte_level;
    } else {
      refuse("has the decoder '" + shown(type) + "', which Shoal does not know");
    }
  }

  void model(const json& from, tokenizer_description& to) {
    const auto type = text_or(from, "type", from.contains("merges") ? "BPE" : "Unigram");
    if (type == "Unigram")
      to.model = unigram_of(from);
    else if (type == "BPE")
      to.model = byte_pairs_of(from);
    else
      refuse("has the model '" + shown(type) + "', which Shoal does not know");
  }

  added_token added(const json& from) {
    return {whole_number<std::uint32_t>(from.at("id")),
            text_at(from, "content"),
            flag_or(from, "special", false),
            flag_or(from, "normalized", !flag_or(from, "special", false)),
            flag_or(from, "single_word", false),
            flag_or(from, "lstrip", false),
            flag_or(from, "rstrip", false)};
  }

  std::vector<std::string> vocabulary(const json& from) {
    std::vector<std::string> out;
    if (!from.is_object()) {
      refuse("has a vocabulary that is no JSON object");
      return out;
    }
    out.resize(from.size());
    std::vector<bool> taken(from.size());
    for (const auto& [token, number] : from.items()) {
      const auto id = whole_number<std::uint32_t>(number);
      if (id >= out.size() || taken[id]) {
        refuse("has the token '" + shown(token) + "' with number " + std::to_string(id) + "; the " +
               std::to_string(out.size()) + " tokens have numbers from 0 on, once each");
        return out;
      }
      out[id] = token;
      taken[id] = true;
    }
    return out;
  }

private:
  static bool has_once(const std::vector<template_part>& parts, template_part::kind what) {
    return std::count_if(parts.begin(), parts.end(),
                         [&](const auto& part) { return part.what == what; }) == 1;
  }

  normalizer_step replacement(const json& from) {
    const auto& content = text_at(from, "content");
    const auto& pattern = from.at("pattern");
    if (pattern.contains("String")) {
      const auto& text = text_at(pattern, "String");
      if (text.empty()) refuse("has the normalizer Replace with an empty pattern");
      return {normalizer_kind::replace, text, content};
    }
    const auto& regex = text_at(pattern, "Regex");
    if (regex == regex_space_runs) return {normalizer_kind::replace_space_runs, {}, content};
    if (regex == regex_bengali_colon) return {normalizer_kind::replace_colon, {}, content};
    refuse("has the normalizer Replace with the regular expression '" + shown(regex) +
           "'; Shoal knows '" + std::string(regex_space_runs) + "' and '" +
           std::string(regex_bengali_colon) + "'");
    return {};
  }

  void metaspace(const json& from, std::string& mark, splitter::prefix& prepend) {
    mark = text_at(from, "replacement");
    if (unicode::count(mark) != 1 || mark == " ")
      refuse("has a Metaspace whose replacement is no single character other than a space");
    const auto scheme = text_or(from, "prepend_scheme",
                                flag_or(from, "add_prefix_space", true) ? "always" : "never");
    if (scheme == "always")
      prepend = splitter::prefix::always;
    else if (scheme == "first")
      prepend = splitter::prefix::first;
    else if (scheme == "never")
      prepend = splitter::prefix::never;
    else
      refuse("has a Metaspace with the prepend_scheme '" + shown(scheme) + "'");
  }

  std::vector<template_part>
  template_parts(const json::array_t& from,
                 const std::map<std::string, std::vector<token_id>>& ids) {
    std::vector<template_part> out;
    for (const auto& each : from) {
      template_part part;
      if (const auto special = each.find("SpecialToken"); special != each.end()) {
        part.token = text_at(*special, "id");
        part.type = whole_number<std::uint8_t>(special->at("type_id"));
        const auto found = ids.find(part.token);
        if (found == ids.end()) {
          refuse("has a template with '" + shown(part.token) +
                 "', which is not among its special_tokens");
          return out;
        }
        part.ids = found->second;
      } else {
        const auto& sequence = each.at("Sequence");
        const auto& which = text_at(sequence, "id");
        if (which != "A" && which != "B")
          refuse("has a template with a text that is neither A nor B");
        part.what = which == "A" ? template_part::kind::first : template_part::kind::second;
        part.type = whole_number<std::uint8_t>(sequence.at("type_id"));
      }
      out.push_back(std::move(part));
    }
    return out;
  }

  unigram_description unigram_of(const json& from) {
    unigram_description out;
    if (!has(from, "unk_id")) {
      refuse("has the model Unigram without unk_id; set it to the number of the unknown token");
      return out;
    }
    out.unknown = whole_number<std::uint32_t>(from.at("unk_id"));
    out.byte_fallback = flag_or(from, "byte_fallback", false);
    for (const auto& each : array_at(from, "vocab")) {
      const auto& piece = each.get_ref<const json::array_t&>();
      if (piece.size() != 2 || !piece[1].is_number()) {
        refuse("has a vocabulary whose entry " + std::to_string(out.pieces.size()) +
               " is no pair of a text and a number");
        return out;
      }
      out.pieces.emplace_back(piece[0].get_ref<const std::string&>(), piece[1].get<double>());
    }
    return out;
  }

  byte_pairs_description byte_pairs_of(const json& from) {
    byte_pairs_description out;
    for (const char* unsupported : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text_or(from, unsupported, "").empty())
        refuse(std::string("has the model BPE with ") + unsupported + ", which is not supported");
    if (has(from, "dropout") && from.at("dropout") != 0)
      refuse("has the model BPE with dropout, which is not supported; set it to null");
    out.tokens = vocabulary(from.at("vocab"));
    for (const auto& each : array_at(from, "merges")) {
      if (each.is_array() && each.size() == 2) {
        out.merges.emplace_back(each[0].get_ref<const std::string&>(),
                                each[1].get_ref<const std::string&>());
        continue;
      }
      const auto& text = each.get_ref<const std::string&>();
      const auto space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        refuse("has the merge " + std::to_string(out.merges.size()) + ", '" + shown(text) +
               "', which is no pair of tokens");
        return out;
      }
      out.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    if (has(from, "unk_token")) out.unknown = text_at(from, "unk_token");
    out.fuse_unknown = flag_or(from, "fuse_unk", false);
    out.byte_fallback = flag_or(from, "byte_fallback", false);
    out.ignore_merges = flag_or(from, "ignore_merges", false);
    return out;
  }
};

/// Calls `read(reader)`, and names the file in what goes wrong.
template <class Read>
result<tokenizer_description> reading(const std::string& name, Read read) {
  reader with;
  tokenizer_description out;
  const auto refused = [&](const std::string& why) {
    return failure{"tokenizer: '" + name + "' " + why};
  };
  try {
    read(with, out);
  } catch (const json::exception& error) {
    return refused("cannot be understood (" + shown(json_words(error.what())) +
                   "); take another file");
  }
  if (!with.why.empty()) return refused(with.why);
  return out;
}

} // namespace

result<tokenizer_description> parse_tokenizer_json(std::string_view text, const std::string& name) {
  return reading(name, [&](reader& with, tokenizer_description& out) {
    const auto file = parse_json<json>(text);
    if (!file.is_object() || !file.contains("model"))
      return with.refuse("is no tokenizer.json: it has no model");
    for (const char* part : {"truncation", "padding"})
      if (reader::has(file, part))
        with.refuse(std::string("has ") + part + ", which is not supported; set it to null");
    if (reader::has(file, "added_tokens"))
      for (const auto& each : reader::array_at(file, "added_tokens"))
        out.added.push_back(with.added(each));
    if (reader::has(file, "normalizer")) with.normalizers(file.at("normalizer"), out.normalizer);
    if (reader::has(file, "pre_tokenizer")) with.splitters(file.at("pre_tokenizer"), out.splitters);
    if (reader::has(file, "post_processor")) with.post_processor(file.at("post_processor"), out);
    if (reader::has(file, "decoder")) with.decoder(file.at("decoder"), out);
    with.model(file.at("model"), out);
  });
}

result<tokenizer> load_tokenizer_json(const std::filesystem::path& path) {
  const auto text = read_whole_file(path, most_bytes, "tokenizer");
  if (!text) return failure{text.error()};
  auto description = parse_tokenizer_json(*text, path.string());
  if (!description) return failure{description.error()};
  auto out = tokenizer::make(*std::move(description));
  if (!out) return failure{"tokenizer: '" + path.string() + "': " + out.error()};
  return out;
}

result<tokenizer_description>
parse_gpt2_vocabulary(std::string_view encoder, std::string_view merges, const std::string& name) {
  return reading(name, [&](reader& with, tokenizer_description& out) {
    byte_pairs_description pairs;
    pairs.tokens = with.vocabulary(parse_json<json>(encoder));
    for (std::size_t line = 1; !merges.empty(); ++line) {
      const auto end = std::min(merges.find('\n'), merges.size());
      auto text = merges.substr(0, end);
      merges.remove_prefix(std::min(end + 1, merges.size()));
      if (text.ends_with('\r')) text.remove_suffix(1);
      if (text.empty() || (line == 1 && text.starts_with("#version"))) continue;
      const auto space = text.find(' ');
      if (space == std::string_view::npos)
        return with.refuse("has no pair of tokens in line " + std::to_string(line) +
                           " of its merges");
      pairs.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    splitter bytes;
    bytes.kind = splitter_kind::byte_level;
    out.splitters = {bytes};
    out.decoder = decoder_kind::byte_level;
    out.model = std::move(pairs);
  });
}

} // namespace shoal::learn
