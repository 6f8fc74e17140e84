#include "kernels/base/json_text.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/formats/tokenizer_regexes.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>
#include <variant>

namespace shoal::learn {

namespace {

using json = nlohmann::json;

json json_of(const normalizer_step& step) {
  using enum normalizer_kind;
  const auto replace_by = [&](const char* kind, std::string_view pattern) {
    return json{{"type", "Replace"},
                {"pattern", {{kind, std::string(pattern)}}},
                {"content", step.content}};
  };
  switch (step.kind) {
  case nmt:
    return {{"type", "Nmt"}};
  case nfc:
    return {{"type", "NFC"}};
  case nfd:
    return {{"type", "NFD"}};
  case nfkc:
    return {{"type", "NFKC"}};
  case nfkd:
    return {{"type", "NFKD"}};
  case lowercase:
    return {{"type", "Lowercase"}};
  case replace:
    return replace_by("String", step.pattern);
  case replace_space_runs:
    return replace_by("Regex", regex_space_runs);
  case replace_colon:
    return replace_by("Regex", regex_bengali_colon);
  case prepend:
    return {{"type", "Prepend"}, {"prepend", step.content}};
  }
  return nullptr;
}

json metaspace_json(const std::string& mark, splitter::prefix prepend, bool cut) {
  static constexpr std::array schemes{"always", "first", "never"};
  // Readers of 2021 look at add_prefix_space, later ones at prepend_scheme.
  return {{"type", "Metaspace"},
          {"replacement", mark},
          {"add_prefix_space", prepend != splitter::prefix::never},
          {"prepend_scheme", schemes[static_cast<std::size_t>(prepend)]},
          {"split", cut}};
}

json json_of(const splitter& of) {
  switch (of.kind) {
  case splitter_kind::metaspace:
    return metaspace_json(of.mark, of.prepend, of.cut);
  case splitter_kind::digits:
    return {{"type", "Digits"}, {"individual_digits", of.individual}};
  case splitter_kind::punctuation:
    return {{"type", "Punctuation"}, {"behavior", "Isolated"}};
  case splitter_kind::byte_level:
    return {{"type", "ByteLevel"},
            {"add_prefix_space", of.add_prefix_space},
            {"trim_offsets", true},
            {"use_regex", of.cut}};
  case splitter_kind::whitespace:
    return {{"type", "WhitespaceSplit"}};
  }
  return nullptr;
}

json json_of(const std::vector<template_part>& parts) {
  json out = json::array();
  for (const auto& part : parts)
    if (part.what == template_part::kind::token)
      out.push_back({{"SpecialToken", {{"id", part.token}, {"type_id", part.type}}}});
    else
      out.push_back({{"Sequence",
                      {{"id", part.what == template_part::kind::first ? "A" : "B"},
                       {"type_id", part.type}}}});
  return out;
}

json json_of(const unigram_description& of) {
  json vocabulary = json::array();
  for (const auto& [piece, score] : of.pieces) vocabulary.push_back({piece, score});
  return {{"type", "Unigram"},
          {"unk_id", of.unknown},
          {"vocab", std::move(vocabulary)},
          {"byte_fallback", of.byte_fallback}};
}

json json_of(const byte_pairs_description& of) {
  json vocabulary = json::object(), merges = json::array();
  for (std::size_t i = 0; i < of.tokens.size(); ++i) vocabulary[of.tokens[i]] = i;
  for (const auto& [left, right] : of.merges) merges.push_back({left, right});
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", of.unknown ? json(*of.unknown) : json()},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", of.fuse_unknown},
          {"byte_fallback", of.byte_fallback},
          {"ignore_merges", of.ignore_merges},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

/// One part, null, or a sequence of several.
template <class Parts>
json sequence_of(const Parts& parts, const char* key) {
  json all = json::array();
  for (const auto& each : parts) all.push_back(json_of(each));
  if (all.empty()) return nullptr;
  return all.size() == 1 ? all.front() : json{{"type", "Sequence"}, {key, std::move(all)}};
}

json post_processor_json(const tokenizer_description& of) {
  if (of.single.empty()) return nullptr;
  json special = json::object();
  for (const auto* parts : {&of.single, &of.pair})
    for (const auto& part : *parts)
      if (part.what == template_part::kind::token)
        special[part.token] = {{"id", part.token},
                               {"ids", part.ids},
                               {"tokens", std::vector<std::string>(part.ids.size(), part.token)}};
  return {{"type", "TemplateProcessing"},
          {"single", json_of(of.single)},
          {"pair", json_of(of.pair)},
          {"special_tokens", std::move(special)}};
}

} // namespace

std::string tokenizer_json(const tokenizer_description& of) {
  json added = json::array();
  for (const auto& token : of.added)
    added.push_back({{"id", token.id},
                     {"special", token.special},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.strip_left},
                     {"rstrip", token.strip_right},
                     {"normalized", token.normalized}});
  json decoder;
  if (of.decoder == decoder_kind::metaspace)
    decoder = metaspace_json(
        of.decoder_mark,
        of.decoder_drops_first ? splitter::prefix::always : splitter::prefix::never, true);
  else if (of.decoder == decoder_kind::byte_level)
    decoder = {{"type", "ByteLevel"},
               {"add_prefix_space", true},
               {"trim_offsets", true},
               {"use_regex", true}};
  const json out{{"version", "1.0"},
                 {"truncation", nullptr},
                 {"padding", nullptr},
                 {"added_tokens", std::move(added)},
                 {"normalizer", sequence_of(of.normalizer, "normalizers")},
                 {"pre_tokenizer", sequence_of(of.splitters, "pretokenizers")},
                 {"post_processor", post_processor_json(of)},
                 {"decoder", std::move(decoder)},
                 {"model", std::visit([](const auto& model) { return json_of(model); }, of.model)}};
  return clean_json_text(out) + "\n";
}

} // namespace shoal::learn
